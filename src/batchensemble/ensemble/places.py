"""Where the tensors of a network's output hold their rows, and how these come apart into members.

The rows are on the axis whose size is `members * N`. If several axes have that size (a time-first output of
`members * N` steps looks like a batch-first one), earlier calls with other sizes decide: the rows are where they were
then. Without such calls they are taken to be on the batch axis. If that axis is the last one, which mostly holds
features, they are taken to be there only if the axes before it are as long as in the input: `(T, N)` for `(T, N, ...)`.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from batchensemble.nn.routing.rows import axis_for_rows
from batchensemble.nn.tracing import is_exporting, is_known
from batchensemble.nn.trees import map_tensors, tensors


class Batch(NamedTuple):
    """What the network was given: `rows` rows on axis `axis`, for each of `members` members.

    If `late`, the network got a single copy of the rows for all members, and a fan-out inside it repeated them.
    `before` holds the sizes of the input's axes before the rows: the number of steps, if it is time-first.
    """

    axis: int
    members: int
    rows: int
    late: bool = False
    before: tuple[int, ...] = ()

    @property
    def repeated(self) -> bool:
        """Whether the network got a copy of the rows for every member."""
        return not self.late and self.members > 1

    def explain(self, error: Exception) -> str:
        """A note on how the input was repeated, if a network's error mentions that many rows; else empty."""
        whole = self.members * self.rows
        sizes = [int(number) for number in re.findall(r"\d+", str(error))]
        if not self.repeated or not whole or not any(size and size % whole == 0 for size in sizes):
            return ""
        return (
            f"All members answered at once: the network got {self.members} x {self.rows} rows, and so much of every "
            f"tensor with {self.rows} entries on axis {self.axis}. If model(x, member=0) fails as well, the inputs do "
            "not fit the network. If not, name those that carry no rows in shared_inputs; "
            f"lists of {self.rows} numbers stay as they are: give tensors instead. A network made for a certain number "
            "of rows answers one member at a time: model(x, member=i)."
        )


class Place(NamedTuple):
    """The axis on which a tensor holds the batch's rows; if `common`, there is one copy of them for all members."""

    axis: int
    common: bool = False


Places = tuple[Place | None, ...]
"""For every tensor of an output, in order; `None` for one without rows."""

MOST = 1000  # places to remember
_UNSEEN = Place(-1)


def readings(tensor: Tensor, batch: Batch) -> list[Place]:
    """Every way to read a tensor's shape, the likeliest first.

    Rows are on the batch axis, perhaps several for each row of the input (windows, frames), or else on another axis of
    the right size (axis 1 of an LSTM's h_n). If the batch axis is the last one, the other axes come first, unless they
    are as long as in the input.

    Examples:
        >>> readings(torch.zeros(20, 3), Batch(axis=0, members=4, rows=5))
        [Place(axis=0, common=False)]
        >>> readings(torch.zeros(20, 20, 3), Batch(axis=0, members=4, rows=5))
        [Place(axis=0, common=False), Place(axis=1, common=False)]
    """
    found = _readings(tensor, batch, is_known)
    if found or not torch.compiler.is_compiling() or is_exporting():
        return found
    return _readings(tensor, batch, bool)  # after a graph break inside the network, the compiler's sizes are unrelated


def _readings(tensor: Tensor, batch: Batch, holds: Callable[[Any], bool]) -> list[Place]:
    """As `readings`; `holds` tells whether a condition on sizes may be relied on."""
    axis, members, rows, late, before = batch
    whole, sizes = members * rows, tensor.shape
    several = tensor.ndim > axis and holds(whole > 0) and holds(sizes[axis] > whole) and holds(sizes[axis] % whole == 0)
    equal = [Place(at) for at in range(tensor.ndim) if holds(sizes[at] == whole)]
    multiple = [Place(axis)] if several else []
    features_last = 0 < axis == tensor.ndim - 1  # more often than rows: (N, classes), where inputs are (T, N, ...)
    if not features_last:
        found = _with_first(axis, [*multiple, *equal])
    elif len(equal) > 1 and _are_as_given(sizes[:axis], before, holds):  # (T, N) after all
        found = [*_with_first(axis, equal), *multiple]
    else:
        found = [*equal, *multiple]
    if not late or members == 1 or not holds(rows > 0):
        return found
    common = [Place(at, common=True) for at in range(tensor.ndim) if holds(sizes[at] == rows)]
    if features_last:
        return [*found, *common]
    first = [place for place in common if place.axis == axis_for_rows(tensor, axis)]
    return [*first, *found] or common[:1]


def _with_first(axis: int, places: list[Place]) -> list[Place]:
    """The same places, one on this axis first."""
    return sorted(places, key=lambda place: place.axis != axis)


def _are_as_given(sizes: Sequence[int], before: tuple[int, ...], holds: Callable[[Any], bool]) -> bool:
    """Whether the axes before the rows are as long as in the input."""
    return len(sizes) == len(before) and all(holds(size == given) for size, given in zip(sizes, before, strict=True))


class Finder:
    """Finds where the tensors of an output hold their rows, and remembers it for calls whose sizes leave that open.

    In a graph only sizes count: they are fixed or symbolic there, and nothing is remembered.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, Place | None] = {}  # empty as long as all rows were on the batch axis

    def find(self, output: Any, answer: Tensor, batch: Batch, call: Callable[[], Hashable]) -> Places:
        """The places in an output.

        Args:
            output: what the network returned.
            answer: the tensor in it that must have rows.
            batch: what the network was given.
            call: makes a key for the kind of call; outputs of different kinds may be laid out differently.
        """
        every = tensors(output)
        found = [readings(tensor, batch) for tensor in every]
        usual = all(each == [(batch.axis, False)] or not tensor.ndim for tensor, each in zip(every, found, strict=True))
        if torch.compiler.is_compiling() or not batch.rows or (usual and not self._seen):
            return tuple(each[0] if each else None for each in found)
        if len(self._seen) > MOST:
            self._seen.clear()
        kind = call(), tuple(tensor.ndim for tensor in every)
        numbered = enumerate(zip(every, found, strict=True))
        return tuple(self._place((*kind, number), each, tensor is answer) for number, (tensor, each) in numbered)

    def _place(self, key: Hashable, found: list[Place], has_rows: bool) -> Place | None:
        """The place seen before, if the sizes allow it; else the likeliest one, remembered if there is no other."""
        seen = self._seen.get(key, _UNSEEN)
        if found and (seen is None or seen in found):
            return seen
        place = found[0] if found else None
        if len(found) < 2 and not (place is None and has_rows):
            self._seen[key] = place
        return place


def no_rows_message(answer: Tensor, rows: int, members: int) -> str:
    """What is wrong with an answer that holds the batch's rows on no axis, and what to do."""
    return (
        f"the network's answer does not hold the {rows * members} rows of {members} members: its shape is "
        f"{tuple(answer.shape)}. If another field of the output has them, name it with output=; a network that joins "
        "its rows, or returns their loss, answers one member at a time: model(x, member=i)"
    )


def unfold(output: Any, places: Places, members: int, copies: int = 1) -> Any:
    """Give every tensor that has rows a first axis of members: `(members, ..., rows, ...)`.

    Args:
        output: the network's output.
        places: where its tensors hold their rows.
        members: how many members answered.
        copies: how often the batch was sent, one copy after the other; only the first one is kept.

    Examples:
        >>> unfold(torch.zeros(2, 12, 5), (Place(1),), members=3).shape
        torch.Size([3, 2, 4, 5])
    """
    each = iter(places)
    return map_tensors(lambda tensor: _unfolded(tensor, next(each), members, copies), output)


def _unfolded(tensor: Tensor, place: Place | None, members: int, copies: int) -> Tensor:
    if place is None:
        return tensor
    if place.common:
        found = tensor.expand(members, *tensor.shape)
    else:
        found = tensor.unflatten(place.axis, (members, tensor.shape[place.axis] // members)).movedim(place.axis, 0)
    if copies == 1:
        return found
    return found.narrow(place.axis + 1, 0, found.shape[place.axis + 1] // copies)
