"""What a converted layer asks about its input: which members the rows belong to, and whether the features fit."""

from torch import Tensor, nn

from batchensemble.nn.routing.route import Route, current
from batchensemble.nn.routing.rows import Rows, owner_of

NOT_THE_ROWS = "should hold the batch's"  # how the message about an input without the batch's rows is known


def rows_of(layer: nn.Module, x: Tensor, axis: int | None = None, features: int = 1) -> Rows:
    """Find out which members the rows of `x` belong to, or raise if that cannot be told.

    Inside an ensemble every layer goes by the route, even one that was put there after `convert`; a bare layer on its
    own expects equal blocks. `x` may hold k rows for every row of the batch (windows, frames, beams), side by side. If
    one member answers the whole batch, everything in it is that member's, whatever the network makes of the rows.

    Args:
        layer: the layer.
        x: its input.
        axis: the axis of the rows, for layers with a convention of their own; by default where the route has them.
        features: how many axes at the end of `x` hold features, and so no rows: an h_n[-1] is `(rows, features)`, even
            where the batch has its rows on axis 1.
    """
    route, members = current(), int(layer.members)  # type: ignore[arg-type]
    if route is None and not layer.routed:
        return _bare_rows(layer, x, members, axis or 0)
    route = _checked_route(layer, route, members)
    axis = max(0, min(route.axis, x.ndim - 1 - features)) if axis is None else axis
    if isinstance(route.owner, int):
        return Rows(members, route.owner, axis)
    found = x.shape[axis] if x.ndim > axis else 0
    if found == 0 and route.count == 0:
        return Rows(members, route.owner, axis)
    if found == 0 or route.count == 0 or found % route.count:
        raise ValueError(_not_the_rows(layer, x, axis, route.count))
    return Rows(members, owner_of(found, route.owner), axis)


def copies_of_the_batch(layer: nn.Module) -> int:
    """How often the batch is there, one copy after another; a bare layer on its own has a copy for every member.

    By this a mask or a state that is there once is told from one that does not fit.
    """
    route = current()
    return int(layer.members) if route is None else route.present  # type: ignore[arg-type]


def _not_the_rows(layer: nn.Module, x: Tensor, axis: int, count: int) -> str:
    said = (
        f"{title(layer)} got an input of shape {tuple(x.shape)}: axis {axis} {NOT_THE_ROWS} {count} rows, or "
        "a multiple of them. "
    )
    if axis in (0, 1) and x.ndim > 2 and x.shape[1 - axis] == count:
        said += (
            f"Axis {1 - axis} does: if the whole network has time first, convert it with batch_dim=1; if only this "
            "part has, make it with batch_first=True. "
        )
    return (
        f"{said}If the first argument carries no rows, name it in shared_inputs. Otherwise exclude this layer, name "
        "the whole network's batch axis with batch_dim, or ask one member at a time: model(x, member=i)."
    )


def _bare_rows(layer: nn.Module, x: Tensor, members: int, axis: int) -> Rows:
    rows = x.shape[axis]
    if rows % members:
        raise ValueError(
            f"{title(layer)} has {members} members and got {rows} rows, which they cannot share equally. "
            "Give it members * n rows, or wrap the network with batchensemble.convert, which splits any batch."
        )
    return Rows(members, None, axis)


def _checked_route(layer: nn.Module, route: Route | None, members: int) -> Route:
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


def check_features(layer: nn.Module, x: Tensor, features: int, at: int) -> None:
    """Refuse a wrong number of features, with torch's type of error: one would broadcast against r, s, statistics."""
    if x.shape[at] != features:
        raise RuntimeError(
            f"{title(layer)} expects {features} features on axis {at % x.ndim}, got an input of shape {tuple(x.shape)}"
        )


def title(layer: nn.Module) -> str:
    """A layer's name and kind, for messages."""
    name = getattr(layer, "where", "")
    return f"layer '{name}' ({type(layer).__name__})" if name else type(layer).__name__
