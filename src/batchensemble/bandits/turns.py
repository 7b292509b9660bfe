"""Which arms may be chosen, and which are due: every arm's first pulls, as soon as it may be chosen."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor


def checked_arms(arms: Tensor | Sequence[Any] | None, rows: int, count: int) -> Tensor:
    """The arms that may be chosen for every row, `(rows, count)` booleans on the CPU; all of them for `None`.

    Raises:
        TypeError: they are no booleans.
        ValueError: they have another shape than `(count,)` or `(rows, count)`, or leave a row without an arm.

    Examples:
        >>> checked_arms([True, False], rows=2, count=2)
        tensor([[ True, False],
                [ True, False]])
    """
    if arms is None:
        return torch.ones(rows, count, dtype=torch.bool, device="cpu")
    mask = torch.as_tensor(arms, device="cpu")
    if mask.dtype != torch.bool:
        raise TypeError(f"arms must be booleans, True for those that may be chosen, got {mask.dtype}")
    if mask.shape not in ((count,), (rows, count)):
        raise ValueError(f"expected arms of shape ({count},) or ({rows}, {count}), got {tuple(mask.shape)}")
    mask = mask.expand(rows, count)
    if not mask.any(1).all():
        raise ValueError(f"arms must leave at least one for every row; row {int(mask.any(1).int().argmin())} has none")
    return mask


def with_turns(
    chosen: Tensor, mask: Tensor, ids: Tensor, first_pulls: int, owed: Sequence[int]
) -> tuple[Tensor, list[int]]:
    """Put arms that are due in place of chosen ones: in turn at first, later those that could not have their turn.

    Args:
        chosen: the arms that members chose, `(N,)`.
        mask: the arms that may be chosen, `(N, arms)`.
        ids: the decisions' ids, `(N,)`, ascending.
        first_pulls: pulls of every arm, in turn.
        owed: arms whose turn came when they could not be chosen, the longest waiting first.

    Returns:
        The arms to pull, and those that are owed a pull then.

    Examples:
        >>> two, mask = torch.tensor([0, 0]), torch.tensor([[True, False], [True, True]])
        >>> with_turns(two, mask, ids=torch.tensor([5, 6]), first_pulls=1, owed=[1])
        (tensor([0, 1]), [])
    """
    pulled, waiting, count = chosen.clone(), list(owed), mask.shape[1]
    in_turn = int((ids < first_pulls * count).sum())  # these rows come first
    for row in _may_be_due(mask, in_turn, waiting):
        if row < in_turn:
            waiting.append(int(ids[row]) % count)
        allowed = mask[row].tolist()
        due = next((arm for arm in waiting if allowed[arm]), None)
        if due is not None:
            waiting.remove(due)
            pulled[row] = due
    return pulled, waiting


def _may_be_due(mask: Tensor, in_turn: int, waiting: list[int]) -> Iterator[int]:
    """The rows in turn, and then those for which an arm may be chosen that is waiting by that time."""
    yield from range(in_turn)
    later = mask[in_turn:, torch.tensor(waiting, dtype=torch.int64, device="cpu")].any(1)
    yield from (later.nonzero()[:, 0] + in_turn).tolist()
