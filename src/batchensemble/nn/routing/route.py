"""The route: which members the rows of the current batch belong to.

An ensemble sets the route, runs the network, and restores the old one; every converted layer reads it. It lives
in a `threading.local`, so two threads can ask the same model for different members.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from torch import Tensor

from batchensemble.nn.speed.hand_over import forget_scaling

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
        before: if it makes any, the sizes of the axes before the rows, in the ensemble's input.
        repeated: how many copies of the user's batch the network was given (1 where rows are split or name members).
    """

    members: int
    count: int
    owner: int | Tensor | None
    axis: int = 0
    fan_out: str | None = None
    copies: int = 1
    before: tuple[int, ...] = ()
    repeated: int = 1

    @property
    def present(self) -> int:
        """How many copies of the user's batch there are at this point of the pass.

        Examples:
            >>> route = Route(members=3, count=5, owner=None, fan_out="head", copies=3)
            >>> route.present, route.fanned().present
            (1, 3)
        """
        return self.repeated * (self.copies if self.fan_out is None else 1)

    def fanned(self) -> "Route":
        """The route after the fan-out."""
        return replace(self, count=self.count * self.copies, fan_out=None)


class _Local(threading.local):
    # Set here and not as a class default: a compiled graph guards on the instance's own attribute.
    def __init__(self) -> None:
        self.route: Route | None = None
        self.left: list[Route | None] = []  # the routes that `carry_route` has put aside, the latest last


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
        _local.route = before
        forget_scaling()


class _Under:
    """Puts a route in force for a `with` block.

    It may be used again, since every backward pass through a checkpoint recomputes. It is reentrant, and safe in
    several threads at once: autograd uses it in both ways.
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
        >>> from torch import nn
        >>> from torch.utils.checkpoint import checkpoint
        >>> layer = nn.Linear(2, 2)
        >>> checkpoint(layer, torch.ones(1, 2), use_reentrant=False, context_fn=carry_route).shape
        torch.Size([1, 2])
    """
    return nullcontext(), _Under(current())
