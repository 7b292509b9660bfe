"""One network: the baseline of every ensemble."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import batchensemble as be
from batchensemble.lab.methods.ensembles.method import Batch, Network, SeededMethod, Stream
from batchensemble.lab.methods.ensembles.objective import classified


@dataclass(frozen=True)
class Single:
    """One network, one prediction."""

    def parts(self, seed: int) -> tuple[SeededMethod, ...]:
        """Return the method itself: one training."""
        return (SeededMethod(self, seed),)

    def build(self, network: Network, seed: int) -> nn.Module:
        """Build the plain network."""
        return network(generator=torch.Generator().manual_seed(seed))

    def streams(self, seed: int) -> tuple[Stream, ...]:
        """Return a single stream."""
        return (Stream(seed, seed),)

    def loss(self, model: nn.Module, batch: Batch, weight_decay: float) -> dict[str, Tensor]:
        """Return the cross-entropy."""
        return classified(model(batch.images), batch.labels)

    def groups(self, model: nn.Module, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Apply weight decay to the kernels."""
        return be.parameter_groups(model, lr, weight_decay)

    def logits(self, models: Sequence[nn.Module], images: Tensor, samples: int) -> Tensor:
        """Return `(1, N, classes)`."""
        logits: Tensor = models[0](images)
        return logits[None]

    def passes(self, samples: int) -> int:
        """Return one: a single pass per image."""
        return 1
