"""The route: which members the rows of the current batch belong to.

An ensemble sets the route, runs the network, and restores the old one; every converted layer reads it. It lives
in a `threading.local`, so two threads can ask the same model for different members.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from torch import Tensor, nn

from batchensemble.nn.rows import Rows
from batchensemble.nn.tracing import is_as_made

T = TypeVar("T")


@dataclass(frozen=True)
class Route:
    """What a layer needs to know about the batch: how many rows there are, and which members they belong to.

    Attributes:
        members: how many members the ensemble has.
        count: rows of the batch as it travels inside the network.
        owner: an `int`, ids `(count,)`, or `None` for equal member-major blocks (see `Rows`).
        axis: the axis that holds the rows in layers without a convention of their own.
        fan_out: the fan-out module, until the batch has reached it; until then no converted layer may be called.
        copies: how many copies of the batch that module makes (1 where rows are split or name their members).
    """

    members: int
    count: int
    owner: int | Tensor | None
    axis: int = 0
    fan_out: str | None = None
    copies: int = 1

    def fanned(self) -> "Route":
        """The route after the fan-out."""
        return replace(self, count=self.count * self.copies, fan_out=None)


class _Local(threading.local):
    # Set here and not as a class default: a compiled graph guards on the instance's own attribute.
    def __init__(self) -> None:
        self.route: Route | None = None
        self.left: list[Route | None] = []  # the routes that `carry_route` has put aside, the latest last
        self.scaled: tuple[Tensor, Tensor, Tensor] | None = None


_local = _Local()


def current() -> Route | None:
    """The route of this thread's current batch."""
    return _local.route


def advance(route: Route) -> None:
    """Replace the route in the middle of a pass (at the fan-out); `travel` restores the one from before the pass."""
    _local.route = route


def travel(route: Route, run: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call `run(*args, **kwargs)` with `route` in force."""
    before = _local.route
    _local.route = route
    try:
        return run(*args, **kwargs)
    finally:
        _local.route, _local.scaled = before, None


def made_of(y: Tensor, z: Tensor, s: Tensor) -> None:
    """Record that `y = z o s_i`, for a norm that may read z instead."""
    if _local.route is not None:
        _local.scaled = (y, z, s)


def taken_apart(y: Tensor) -> tuple[Tensor, Tensor | None]:
    """`z, s` if a layer has just made `y = z o s_i`; otherwise `y, None`."""
    scaled, _local.scaled = _local.scaled, None
    if scaled is None or scaled[0] is not y or not is_as_made(y):
        return y, None
    return scaled[1], scaled[2]


class _Under:
    """A route for the length of a `with`, as often as needed: every backward pass through a checkpoint recomputes.

    It may be entered within itself and in several threads at once, as autograd has them.
    """

    def __init__(self, route: Route | None) -> None:
        self._route = route

    def __enter__(self) -> None:
        _local.left.append(_local.route)
        _local.route = self._route

    def __exit__(self, *_: object) -> None:
        _local.route = _local.left.pop()


def carry_route() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """The `context_fn` for `torch.utils.checkpoint`: recomputation follows the route of the first pass.

    Examples:
        >>> import torch
        >>> from torch.utils.checkpoint import checkpoint
        >>> layer = nn.Linear(2, 2)
        >>> checkpoint(layer, torch.ones(1, 2), use_reentrant=False, context_fn=carry_route).shape
        torch.Size([1, 2])
    """
    return nullcontext(), _Under(current())


def rows_of(layer: nn.Module, x: Tensor, axis: int | None = None) -> Rows:
    """Find out which members the rows of `x` belong to, or raise if that cannot be told.

    Inside an ensemble every layer goes by the route, even one that was put there after `convert`; a bare layer on its
    own expects equal blocks. `x` may hold k rows for every row of the batch (windows, frames, beams), side by side.
    """
    route, members = current(), int(layer.members)  # type: ignore[arg-type]
    if route is None and not layer.routed:
        return _bare_rows(layer, x, members, axis or 0)
    route = _passable(layer, route, members)
    axis = route.axis if axis is None else axis
    found = x.shape[axis] if x.ndim > axis else 0
    if found == 0 and route.count == 0:
        return Rows(members, route.owner, axis)
    if found == 0 or route.count == 0 or found % route.count:
        raise ValueError(
            f"{title(layer)} got an input of shape {tuple(x.shape)}: axis {axis} should hold the batch's "
            f"{route.count} rows, or a multiple of them. Exclude this layer, or name the batch axis with batch_dim "
            "(one for the whole network)."
        )
    return Rows(members, _repeat_owner(route.owner, found // route.count), axis)


def check_features(layer: nn.Module, x: Tensor, features: int, at: int) -> None:
    """Refuse a wrong number of features, with torch's type of error: one would broadcast against r, s, statistics."""
    if x.shape[at] != features:
        raise RuntimeError(
            f"{title(layer)} expects {features} features on axis {at % x.ndim}, got an input of shape {tuple(x.shape)}"
        )


def _bare_rows(layer: nn.Module, x: Tensor, members: int, axis: int) -> Rows:
    rows = x.shape[axis]
    if rows % members:
        raise ValueError(
            f"{title(layer)} has {members} members and got {rows} rows, which they cannot share equally. "
            "Give it members * n rows, or wrap the network with batchensemble.convert, which splits any batch."
        )
    return Rows(members, None, axis)


def _passable(layer: nn.Module, route: Route | None, members: int) -> Route:
    if route is None:
        raise RuntimeError(
            f"{title(layer)} belongs to an ensemble and was called outside it, so its rows have no members. "
            "Call the ensemble, not its .net; under gradient checkpointing pass use_reentrant=False and "
            "context_fn=batchensemble.nn.carry_route."
        )
    if route.fan_out is not None:
        raise RuntimeError(
            f"{title(layer)} was reached before the fan-out at '{route.fan_out}', where the batch still stands for "
            "all members. Exclude it, or fan out earlier."
        )
    if route.members != members:
        raise RuntimeError(
            f"{title(layer)} has {members} members inside an ensemble of {route.members}: a layer that is put into an "
            "ensemble needs as many members, and an ensemble inside another one cannot be routed."
        )
    return route


def _repeat_owner(owner: int | Tensor | None, times: int) -> int | Tensor | None:
    """Ids for `times` inner rows per row: (a, b) -> (a, a, b, b)."""
    if not isinstance(owner, Tensor) or times == 1:
        return owner
    return owner.unsqueeze(1).expand(-1, times).reshape(-1)


def title(layer: nn.Module) -> str:
    """A layer's name and kind, for messages."""
    name = getattr(layer, "where", "")
    return f"layer '{name}' ({type(layer).__name__})" if name else type(layer).__name__
