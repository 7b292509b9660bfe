"""Where the tensors of a network's output hold their rows, and how these come apart into members.

Sizes tell, as long as no other axis happens to have as many: `(T, N, classes)` looks like `(N, T, classes)` once T is
`members * N`. Then one row more tells: the axis that grows holds the rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from batchensemble.nn.rows import axis_for_rows, rows_in
from batchensemble.nn.tracing import is_known
from batchensemble.trees import map_tensors, tensors


class Batch(NamedTuple):
    """What the network was given: `rows` rows on axis `axis`, for each of `members` members.

    If `late`, there was one copy of them at first, for all members, which a fan-out inside the network repeated.
    """

    axis: int
    members: int
    rows: int
    late: bool = False


class Place(NamedTuple):
    """Where a tensor holds the batch's rows: on this axis; if `common`, one copy of them for all members."""

    axis: int
    common: bool = False


Places = tuple[Place | None, ...]
"""For every tensor of an output, in order; `None` for one without rows."""


def readings(tensor: Tensor, batch: Batch) -> list[Place]:
    """Every way to read a tensor's shape, the likeliest first.

    Rows are on the batch axis; else on an axis that has as many (an LSTM's h_n has them on axis 1); else there are
    several on the batch axis for each row outside (windows, frames).

    Examples:
        >>> import torch
        >>> readings(torch.zeros(20, 3), Batch(axis=0, members=4, rows=5))
        [Place(axis=0, common=False)]
        >>> readings(torch.zeros(20, 20, 3), Batch(axis=0, members=4, rows=5))
        [Place(axis=0, common=False), Place(axis=1, common=False)]
    """
    axis, members, rows, late = batch
    before = rows_in(tensor, axis) if late and members > 1 and rows else None
    common = [Place(axis_for_rows(tensor, axis), True)] if before is not None and is_known(before == rows) else []
    whole = members * rows
    equal = [Place(at) for at in range(tensor.ndim) if is_known(tensor.shape[at] == whole)]
    equal.sort(key=lambda place: place.axis != axis)
    return [*common, *equal, *([Place(axis)] if _holds_several(tensor, axis, whole) else [])]


def _holds_several(tensor: Tensor, axis: int, whole: int) -> bool:
    if tensor.ndim <= axis or not is_known(whole > 0):
        return False
    size = tensor.shape[axis]
    return is_known(size > whole) and is_known(size % whole == 0)


class Finder:
    """Finds the places of an output's tensors; where sizes leave them open, one row more is tried, once for every size.

    Not in a graph, where nothing can be tried.
    """

    def __init__(self) -> None:
        self._tried: dict[Any, Places] = {}

    def find(self, output: Any, batch: Batch, with_one_more: Callable[[], Any]) -> Places:
        """The places in `output`; `with_one_more()` is the output for one row more, or `None` if it cannot be had."""
        found = [readings(tensor, batch) for tensor in tensors(output)]
        likeliest = tuple(each[0] if each else None for each in found)
        if torch.compiler.is_compiling() or all(len(each) < 2 for each in found) or not batch.rows:
            return likeliest
        key = batch, tuple(tensor.shape for tensor in tensors(output))
        if key not in self._tried:
            larger = with_one_more()
            if larger is None:
                return likeliest
            self._tried[key] = _grown_places(output, larger, batch) or likeliest
        return self._tried[key]


def _grown_places(output: Any, larger: Any, batch: Batch) -> Places | None:
    """The readings that agree with what the network returns for one row more; `None` if that is something else."""
    pairs = list(zip(tensors(output), tensors(larger), strict=False))
    alike = len(tensors(output)) == len(tensors(larger)) and all(a.ndim == b.ndim for a, b in pairs)
    return tuple(_grown(a, b, batch) for a, b in pairs) if alike else None


def _grown(tensor: Tensor, larger: Tensor, batch: Batch) -> Place | None:
    rows = batch.rows
    for place in readings(tensor, batch):
        if larger.shape[place.axis] * rows == tensor.shape[place.axis] * (rows + 1):
            return place
    return None


def unfold(output: Any, places: Places, members: int, share: tuple[int, int] = (1, 1)) -> Any:
    """Give every tensor that has rows a first axis of members: `(members, ..., rows, ...)`.

    Args:
        output: the network's output.
        places: where its tensors hold their rows.
        members: how many members answered.
        share: keep `share[0]` of every `share[1]` rows, the first ones, if the others were only there for safety.

    Examples:
        >>> import torch
        >>> unfold(torch.zeros(2, 12, 5), (Place(1),), members=3).shape
        torch.Size([3, 2, 4, 5])
    """
    each = iter(places)
    return map_tensors(lambda tensor: _unfolded(tensor, next(each), members, *share), output)


def _unfolded(tensor: Tensor, place: Place | None, members: int, kept: int, sent: int) -> Tensor:
    if place is None:
        return tensor
    if place.common:
        found = tensor.expand(members, *tensor.shape)
    else:
        found = tensor.unflatten(place.axis, (members, tensor.shape[place.axis] // members)).movedim(place.axis, 0)
    if kept == sent:
        return found
    return found.narrow(place.axis + 1, 0, found.shape[place.axis + 1] // sent * kept)
