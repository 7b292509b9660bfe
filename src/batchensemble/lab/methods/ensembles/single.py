"""One network: the baseline of every ensemble."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import batchensemble as be

from .method import Batch, Network, SeededMethod, Stream
from .objective import classified


@dataclass(frozen=True)
class Single:
    """One network, one prediction."""

    def parts(self, seed: int) -> tuple[SeededMethod, ...]:
        """Returns the method itself: one training."""
        return (SeededMethod(self, seed),)

    def build(self, network: Network, seed: int) -> nn.Module:
        """Builds the plain network."""
        return network(generator=torch.Generator().manual_seed(seed))

    def streams(self, seed: int) -> tuple[Stream, ...]:
        """Returns a single stream."""
        return (Stream(seed, seed),)

    def loss(self, model: nn.Module, batch: Batch, weight_decay: float) -> dict[str, Tensor]:
        """Returns the cross-entropy."""
        return classified(model(batch.images), batch.labels)

    def groups(self, model: nn.Module, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Applies weight decay to the kernels."""
        return be.parameter_groups(model, lr, weight_decay)

    def logits(self, models: Sequence[nn.Module], images: Tensor, samples: int) -> Tensor:
        """Returns `(1, N, classes)`."""
        logits: Tensor = models[0](images)
        return logits[None]

    def passes(self, samples: int) -> int:
        """Returns one: a single pass per image."""
        return 1
