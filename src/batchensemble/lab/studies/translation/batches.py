"""Batches of tokens as a function of seed and step alone."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchensemble.lab.data.text import Buckets, Prepared
from batchensemble.lab.training.batches import rank_rows
from batchensemble.seeds import seed_of


class Batch(NamedTuple):
    """A batch of sentence pairs.

    Attributes:
        source: tokens `(N, S)`, padded.
        target: tokens `(N, T)`, padded; what the network should produce.
        place: position of every row in the batch of all processes, `(N,)`; `None` with a single process.
        total: rows in the batch of all processes.
        share: mean number of target tokens per process, a scalar; `None` with a single process.
    """

    source: Tensor
    target: Tensor
    place: Tensor | None = None
    total: int = 0
    share: Tensor | None = None


@dataclass(frozen=True, eq=False)
class TokenBatches:
    """An endless sequence of batches: pass after pass over the corpus, each in its own order.

    An epoch is a number of steps, not a pass.

    Args:
        data: the training set.
        buckets: groups it into the batches of one pass.
        steps: steps per epoch.
        seed: seeds the orders.
        device: where batches go.
        rank: index of this process.
        world: number of processes that share a batch.
    """

    data: Prepared
    buckets: Buckets
    steps: int
    seed: int
    device: torch.device
    rank: int = 0
    world: int = 1
    _pass: dict[int, list[tuple[int, NDArray[np.int64]]]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return self.steps

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        for step in range(number * self.steps, (number + 1) * self.steps):
            round_, place = divmod(step, len(self.buckets))
            yield self._batch(*self._batches_of(round_)[place])

    def _batches_of(self, round_: int) -> list[tuple[int, NDArray[np.int64]]]:
        """The batches of one pass; the pass last asked for is kept."""
        if round_ not in self._pass:
            self._pass.clear()
            self._pass[round_] = self.buckets.batches(seed_of(self.seed, round_))
        return self._pass[round_]

    def _batch(self, width: int, rows: NDArray[np.int64]) -> Batch:
        mine = rank_rows(len(rows), self.rank, self.world)
        source, target = (self._there(side.padded(rows[mine], width)) for side in (self.data.source, self.data.target))
        if self.world == 1:
            return Batch(source, target)
        starts = self.data.target.starts
        share = self._there(np.atleast_1d((starts[rows + 1] - starts[rows]).sum())) / self.world
        return Batch(source, target, self._there(np.arange(len(rows))[mine]), len(rows), share.squeeze())

    def _there(self, numbers: NDArray[np.int64]) -> Tensor:
        tensor = torch.from_numpy(numbers)
        if self.device.type != "cuda":
            return tensor
        return tensor.pin_memory().to(self.device, non_blocking=True)


def validation_batches(data: Prepared, tokens: int, device: torch.device) -> Iterator[Batch]:
    """Every pair of a small set once, grouped by similar length."""
    order = np.argsort(-data.lengths, kind="stable")  # the first batch is the largest
    start = 0
    while start < len(order):
        width = int(data.lengths[order[start]])
        rows = order[start : start + max(1, tokens // width)]
        start += len(rows)
        source, target = (torch.from_numpy(side.padded(rows, width)) for side in (data.source, data.target))
        yield Batch(source.to(device), target.to(device))
