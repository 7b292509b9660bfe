"""What a training is fed with, as a function of seed and epoch alone: nothing to save, nothing to lose."""

from collections.abc import Iterator
from typing import Any, Protocol


class Batches(Protocol):
    """The batches of every epoch.

    An epoch is the unit of training: after it a line is logged, a checkpoint may be written, and randomness
    starts anew from the epoch's number. So a training that was killed goes on as if it had not been.
    """

    def __len__(self) -> int:
        """Steps in an epoch."""
        ...

    def epoch(self, number: int) -> Iterator[Any]:
        """The batches of an epoch, the same at every call: tensors of constant shapes in a tuple or dict."""
        ...


def rank_rows(total: int, rank: int, world: int, *, own_members: bool = False) -> slice:
    """The rows of a global batch that one of `world` processes takes.

    Args:
        total: rows of the global batch.
        rank: this process.
        world: how many processes there are.
        own_members: one block each, so that every process has its own members (whose rows are neighbours);
            else every `world`-th row, so that every process has rows of all members.

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
