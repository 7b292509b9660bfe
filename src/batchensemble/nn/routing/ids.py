"""Member ids, checked: a bad id is an error in eager mode and inside a compiled graph, never an answer."""

from typing import Any

import torch
from torch import Tensor

from batchensemble.nn.integers import as_integer
from batchensemble.nn.tracing import is_exporting, only_computes


def _checked_ids(ids: Tensor, members: int) -> Tensor:
    """A copy of the ids, every one of which names a member."""
    if ids.is_cuda and torch.cuda.is_current_stream_capturing():  # reading values would break the capture
        return far_from_negative(ids)
    outside = far_from_negative(ids) >= members
    if bool(outside.any()):
        raise IndexError(f"member ids must lie in [0, {members}), got {int(ids[outside][0])}")
    return ids.clone()


_in_a_graph = torch.library.custom_op("batchensemble::checked_ids", _checked_ids, mutates_args=())


def far_from_negative(ids: Tensor) -> Tensor:
    """Turn negative ids, which indexing would count from the end, into huge ones, which it refuses; in one kernel.

    Examples:
        >>> far_from_negative(torch.tensor([0, 7, -1])) < 10
        tensor([ True,  True, False])
    """
    return ids & (2**63 - 1)


@_in_a_graph.register_fake
def _(ids: Tensor, members: int) -> Tensor:
    return torch.empty_like(ids)


def checked_owner(member: Any, rows: int, members: int, device: torch.device) -> int | Tensor:
    """Check the user's `member=`: one member for all rows, or one id per row.

    Raises:
        IndexError: an id outside `[0, members)`, named.
        ValueError: ids whose shape is not `(rows,)`.
        TypeError: neither an integer nor a tensor of integers.

    Examples:
        >>> checked_owner(torch.tensor([2, 0]), rows=2, members=3, device=torch.device("cpu"))
        tensor([2, 0])
    """
    if isinstance(member, Tensor):
        if member.is_floating_point() or member.is_complex() or member.dtype == torch.bool:
            raise TypeError(f"member ids must be integers, got {member.dtype}")
        if member.shape != (rows,):
            raise ValueError(
                f"member must be one integer or one id for each of the {rows} rows, got shape {tuple(member.shape)}"
            )
        ids = member.to(device, torch.long)  # uint8 would index as a mask
        if is_exporting():  # into a graph of torch's own operators, whose gather refuses ids that are too large
            return far_from_negative(ids)
        return _checked_ids(ids, members) if only_computes(ids) else _in_a_graph(ids, members)
    return checked_member(member, members)


def checked_member(member: Any, members: int) -> int:
    """A member as an `int`, whatever kind of integer it is: a list of 0-d tensors would index several axes.

    Raises:
        IndexError: a number outside `[0, members)`, named.
        TypeError: not an integer; a truth value does not count as one.

    Examples:
        >>> checked_member(torch.tensor(2), members=3)
        2
    """
    number = member if isinstance(member, torch.SymInt) else as_integer(member)
    if number is None:
        raise TypeError(f"member must be an integer or a tensor of ids, got {type(member).__name__}")
    if number < 0 or number >= members:
        raise IndexError(f"member must lie in [0, {members}), got {number}")
    return number  # type: ignore[return-value]
