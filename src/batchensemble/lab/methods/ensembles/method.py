"""The interface of every method: how it is built, fed, trained and evaluated."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn

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


class Method(Protocol):
    """A way to make an ensemble. Implementations are frozen dataclasses whose fields are settings."""

    def parts(self, seed: int) -> tuple[SeededMethod, ...]:
        """Return the trainings it needs: usually itself; for a naive ensemble, a single network per member."""
        ...

    def build(self, network: Network, seed: int) -> nn.Module:
        """Build the model of one training."""
        ...

    def streams(self, seed: int) -> tuple[Stream, ...]:
        """Return the streams of a batch, whose rows follow one another in it."""
        ...

    def loss(self, model: nn.Module, batch: Batch, weight_decay: float) -> dict[str, Tensor]:
        """Return the `loss` to minimise, and `cross_entropy` and `accuracy` for the log."""
        ...

    def groups(self, model: nn.Module, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Return the optimiser's parameter groups."""
        ...

    def logits(self, models: Sequence[nn.Module], images: Tensor, samples: int) -> Tensor:
        """Return `(predictions, N, classes)` from the trained parts in evaluation mode; dropout draws `samples`."""
        ...

    def passes(self, samples: int) -> int:
        """Return the number of forward passes per image."""
        ...
