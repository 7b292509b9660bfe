"""What a method is: how it is built, fed, trained and evaluated."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import batchensemble as be
from batchensemble.lab.methods.ensembles.objective import classified

Network = Callable[..., nn.Module]
"""Builds the plain network; takes `generator`, `head_width`, `dropout`, `block_dropout` as the models do."""


class Batch(NamedTuple):
    """Images `(N, C, H, W)`, labels `(N,)`, and the positions of the rows.

    Attributes:
        images: the network's inputs.
        labels: their classes.
        place: position of every row in the batch of all processes, `(N,)`; `None` with a single process.
        total: rows in the batch of all processes.
    """

    images: Tensor
    labels: Tensor
    place: Tensor | None = None
    total: int = 0


class Stream(NamedTuple):
    """An order of the training images and a source of crops, each given by its seed."""

    order: int
    crops: int


class SeededMethod(NamedTuple):
    """One of the trainings a method consists of: what is trained, the method itself or a simpler one, and its seed."""

    method: "Method"
    seed: int


class Method:
    """A way to make an ensemble. Subclasses are frozen dataclasses whose fields are settings.

    Everything here is done as with one network. A subclass overrides what it does differently.
    """

    def parts(self, seed: int) -> tuple[SeededMethod, ...]:
        """The trainings it needs: usually itself; for a naive ensemble, a single network per member."""
        return (SeededMethod(self, seed),)

    def build(self, network: Network, seed: int) -> nn.Module:
        """Build the model of one training."""
        return network(generator=torch.Generator().manual_seed(seed))

    def streams(self, seed: int) -> tuple[Stream, ...]:
        """The streams of a batch, whose rows follow one another in it."""
        return (Stream(seed, seed),)

    def loss(self, model: nn.Module, batch: Batch, weight_decay: float) -> dict[str, Tensor]:
        """The `loss` to minimise, and `cross_entropy` and `accuracy` for the log."""
        return classified(model(batch.images), batch.labels)

    def groups(self, model: nn.Module, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """The optimiser's parameter groups; kernels decay, norms and biases do not."""
        return be.parameter_groups(model, lr, weight_decay)

    def logits(self, models: Sequence[nn.Module], images: Tensor, samples: int) -> Tensor:
        """`(predictions, N, classes)` from the trained parts in evaluation mode; dropout draws `samples`."""
        logits: Tensor = models[0](images)
        return logits[None]

    def passes(self, samples: int) -> int:
        """The number of forward passes per image."""
        return 1
