"""Batches by tokens: sentences of similar length together, in a few fixed shapes.

A batch is as wide as its bucket and has as many rows as fit into the tokens of a batch. Sentences that do not fill a
batch go to the next wider bucket; only the remainder of the widest is left out, different sentences in every pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Buckets:
    """The batches of one pass over a corpus.

    Args:
        lengths: tokens in the longer side of every sentence pair, `(N,)`.
        tokens: tokens per batch and side, including padding.
        widths: widths of the buckets, ascending; the last must hold the longest sentence.
        multiple: the number of rows is a multiple of this, so that members and processes share them equally.

    Examples:
        >>> buckets = Buckets(np.array([3, 7, 8, 5, 6, 12, 16, 9]), tokens=32, widths=(8, 16), multiple=2)
        >>> sorted((width, len(rows)) for width, rows in buckets.batches(seed=0))
        [(8, 4), (16, 2), (16, 2)]
        >>> len(buckets)
        3
    """

    lengths: NDArray[np.integer]
    tokens: int
    widths: Sequence[int] = WIDTHS
    multiple: int = 8

    def __post_init__(self) -> None:
        if len(self.lengths) and int(self.lengths.max()) > self.widths[-1]:
            raise ValueError(f"a sentence of {int(self.lengths.max())} tokens is longer than {self.widths[-1]}")
        if self.tokens < self.used[-1] * self.multiple:
            raise ValueError(
                f"{self.tokens} tokens do not hold {self.multiple} sentences of {self.used[-1]} tokens: "
                f"take at least {self.used[-1] * self.multiple} tokens a batch"
            )
        if not len(self):
            raise ValueError(
                f"{len(self.lengths)} sentence pairs do not fill one batch of {self.rows(self.used[-1])}: "
                f"take fewer than {self.tokens} tokens a batch"
            )

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The widths up to the one that holds the longest sentence."""
        longest = int(self.lengths.max()) if len(self.lengths) else 0
        return tuple(self.widths[: int(np.searchsorted(np.asarray(self.widths), longest)) + 1])

    def rows(self, width: int) -> int:
        """The number of rows in a batch of this width."""
        return self.tokens // width // self.multiple * self.multiple

    def __len__(self) -> int:
        """The number of batches in a pass, the same for all passes."""
        return self._count

    @cached_property
    def _count(self) -> int:
        counts = np.bincount(self._bucket, minlength=len(self.used))
        batches, carried = 0, 0
        for width, count in zip(self.used, counts, strict=True):
            full, carried = divmod(int(count) + carried, self.rows(width))
            batches += full
        return batches

    def batches(self, seed: int) -> list[tuple[int, Rows]]:
        """The batches of one pass in order: width and rows of each."""
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(self.lengths))
        found: list[tuple[int, Rows]] = []
        carried = order[:0]
        for place, width in enumerate(self.used):
            # Shuffled again: rows go to members by position, and no member may get all the shorter sentences.
            rows = generator.permutation(np.concatenate([carried, order[self._bucket[order] == place]]))
            size = self.rows(width)
            full = len(rows) // size
            found += [(width, batch) for batch in rows[: full * size].reshape(full, size)]
            carried = rows[full * size :]
        return [found[place] for place in generator.permutation(len(found))]

    @cached_property
    def _bucket(self) -> NDArray[np.int64]:
        """The bucket of every sentence pair."""
        return np.searchsorted(np.asarray(self.used), self.lengths)
