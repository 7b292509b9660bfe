"""Which member answers which row: the one place that lines fast weights up with a batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from batchensemble.nn.tracing import is_exporting


def axis_for_rows(tensor: Tensor, axis: int) -> int:
    """The axis that may hold a tensor's rows: `axis`, or the only one of a vector (lengths, labels)."""
    return 0 if tensor.ndim == 1 else axis


def rows_in(tensor: Tensor, axis: int) -> int | None:
    """How many rows a tensor has on that axis; `None` if it has no such axis.

    Examples:
        >>> rows_in(torch.ones(5, 7, 3), axis=1), rows_in(torch.ones(7), axis=1), rows_in(torch.tensor(1.0), axis=1)
        (7, 7, None)
    """
    at = axis_for_rows(tensor, axis)
    return tensor.shape[at] if tensor.ndim > at else None


def places_of(ids: Tensor) -> list[tuple[int, Tensor]]:
    """Every id that occurs, in order, with its places, ascending.

    Examples:
        >>> places_of(torch.tensor([2, 0, 2]))
        [(0, tensor([1])), (2, tensor([0, 2]))]
    """
    present, counts = torch.stack(ids.unique(return_counts=True)).tolist()  # a GPU is waited for once, not per id
    return list(zip(present, ids.argsort(stable=True).split(counts), strict=True))


def owner_of(rows: int, owner: int | Tensor | None) -> int | Tensor | None:
    """The owner of `rows` rows, as many of them for each row that `owner` speaks of (windows, beams), side by side.

    Examples:
        >>> owner_of(4, torch.tensor([2, 0]))
        tensor([2, 2, 0, 0])
    """
    if not isinstance(owner, Tensor) or rows == owner.shape[0]:
        return owner
    # not repeat_interleave, which onnxruntime refuses with a computed count
    return owner.unsqueeze(1).expand(-1, rows // owner.shape[0]).reshape(-1)


@dataclass(frozen=True)
class Rows:
    """Which member each row of a tensor belongs to.

    `owner` is an `int` (one member answers every row), a tensor of ids (a member for each row), or `None`
    (every member answers an equal block of rows, member-major: member 0's rows first).

    Examples:
        >>> rows = Rows(members=2, owner=None)
        >>> rows.affine(torch.ones(4, 3), scale=torch.tensor([[1.0], [10.0]]).expand(2, 3), at=1)[:, 0]
        tensor([ 1.,  1., 10., 10.])
    """

    members: int
    owner: int | Tensor | None
    axis: int = 0

    def affine(self, x: Tensor, scale: Tensor | None = None, shift: Tensor | None = None, *, at: int) -> Tensor:
        """`x ∘ scale_i + shift_i`, where member i owns the row.

        Args:
            x: `(..., rows, ..., *features, ...)`, the rows on `self.axis`.
            scale: `(members, *features)`.
            shift: `(members, *features)`.
            at: the axis of `x` on which the features begin; it comes after the axis of the rows.
        """
        if scale is None and shift is None:
            return x
        if at <= self.axis and not isinstance(self.owner, int):  # one member's features may come without rows
            raise ValueError(
                f"members need a batch: shape {tuple(x.shape)} has its features on axis {at}, no rows before"
            )
        whole = self.owner is None and torch.compiler.is_compiling() and (is_exporting() or at < x.ndim - 1)
        beside, y = (self.repeated, x) if whole else (self.spread, self.split(x))
        if scale is not None and shift is not None:
            y = torch.addcmul(beside(shift, x, at), y, beside(scale, x, at))  # one pass instead of two
        elif scale is not None:
            y = y * beside(scale, x, at)
        elif shift is not None:
            y = y + beside(shift, x, at)
        return y if whole else self.join(y)

    def split(self, x: Tensor) -> Tensor:
        """Make the member axis explicit if rows come in blocks: `(members * n, ...) -> (members, n, ...)`."""
        if self.owner is not None:
            return x
        return torch.unflatten(x, self.axis, (self.members, x.shape[self.axis] // self.members))

    def join(self, x: Tensor) -> Tensor:
        """Undo `split`."""
        if self.owner is not None:
            return x
        return x.flatten(self.axis, self.axis + 1)

    def sums(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Sum each tensor over every member's block of rows: `(members * n, channels, ...) -> (members, channels)`."""
        by_row = [x.sum(tuple(range(2, x.ndim))) if x.ndim > 2 else x for x in tensors]
        return self.split(torch.stack(by_row, 1)).sum(1).unbind(1)  # stacked, for one kernel instead of several

    def partition(self, count: int) -> Sequence[tuple[int, slice | Tensor]]:
        """Each member that owns some of `count` rows, with its rows: for work that must go member by member."""
        if self.owner is None:
            size = count // self.members
            return [(i, slice(i * size, (i + 1) * size)) for i in range(self.members)]
        if isinstance(self.owner, Tensor):
            return places_of(self.owner)
        return [(self.owner, slice(0, count))]

    def spread(self, fast: Tensor, x: Tensor, at: int) -> Tensor:
        """`fast` in the dtype of x and in a shape that broadcasts against `split(x)`."""
        features = fast.shape[1:]
        between, behind = [1] * (at - self.axis - 1), [1] * (x.ndim - at - len(features))
        if self.owner is None:
            shape = (self.members, 1, *between, *features, *behind)
        else:
            fast = fast[self.owner]
            rows = (fast.shape[0], *between) if isinstance(self.owner, Tensor) else ()
            shape = (*rows, *features, *behind)
        return _cast(fast if fast.shape == shape else fast.reshape(shape), x.dtype)

    def repeated(self, fast: Tensor, x: Tensor, at: int) -> Tensor:
        """`fast` with a vector for every row, to match x as it is: for graphs, which do not store these vectors.

        Splitting x would cost images their channels_last in a compiled graph, and fix the batch size in an export.
        """
        each, features = x.shape[self.axis] // self.members, fast.shape[1:]
        shape = [1] * x.ndim
        shape[self.axis], shape[at : at + len(features)] = self.members * each, features
        return _cast(fast.unsqueeze(1).expand(-1, each, *features).reshape(shape), x.dtype)


def _cast(fast: Tensor, dtype: torch.dtype) -> Tensor:
    return fast if fast.dtype == dtype else fast.to(dtype)  # a `to` that changes nothing still costs a call
