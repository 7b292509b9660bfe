"""Training batches as a function of seed and epoch alone, so that a checkpoint need not save any loader state."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor


class Batches(Protocol):
    """The batches of every epoch.

    Training proceeds in epochs. After each one a line is logged, a checkpoint may be written, and the random
    generators are reseeded from the epoch's number. A training that was killed therefore resumes as if it had not been.
    """

    def __len__(self) -> int:
        """The number of steps in an epoch."""
        ...

    def epoch(self, number: int) -> Iterator[Any]:
        """The batches of an epoch, the same at every call: a tuple or dict of tensors, in few shapes."""
        ...


def shuffled(seeds: Sequence[int], count: int, size: int) -> Tensor:
    """Draw the rows of every step of an epoch, `(steps, len(seeds) * size)`; a smaller remainder is left out.

    Args:
        seeds: one for every stream; the rows of one follow those of another in a step.
        count: number of rows that there are.
        size: rows of a stream in a step.

    Examples:
        >>> rows = shuffled([3, 4], count=10, size=4)
        >>> rows.shape, torch.equal(rows[:, :4], shuffled([3], count=10, size=4))
        (torch.Size([2, 8]), True)
    """
    steps = count // size
    orders = (torch.randperm(count, generator=torch.Generator().manual_seed(seed), device="cpu") for seed in seeds)
    return torch.cat([order[: steps * size].view(steps, size) for order in orders], 1)


def rank_rows(total: int, rank: int, world: int, *, own_members: bool = False) -> slice:
    """The rows of a global batch that process `rank` of `world` takes.

    Args:
        total: number of rows in the global batch.
        rank: index of this process.
        world: number of processes.
        own_members: if true, each process takes one contiguous block, so that it has members of its own (a
            member's rows are contiguous); else every `world`-th row, so that it has rows of all members.

    Raises:
        ValueError: the processes would get different numbers of rows, and so unequal weights.

    Examples:
        >>> list(range(8))[rank_rows(8, rank=1, world=2)]
        [1, 3, 5, 7]
        >>> list(range(8))[rank_rows(8, rank=1, world=2, own_members=True)]
        [4, 5, 6, 7]
    """
    if total % world:
        raise ValueError(f"a batch of {total} rows cannot be shared equally by {world} processes")
    share = total // world
    return slice(rank * share, (rank + 1) * share) if own_members else slice(rank, total, world)
