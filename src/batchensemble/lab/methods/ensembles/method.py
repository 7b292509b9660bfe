"""What every method answers: how it is built, fed, trained and asked."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn

Network = Callable[..., nn.Module]
"""Makes the plain network; takes `generator`, `head_width`, `dropout`, `block_dropout` as the models do."""


class Batch(NamedTuple):
    """Images `(N, C, H, W)`, labels `(N,)`, and where the rows stand.

    Attributes:
        images: what the network sees.
        labels: their classes.
        place: of every row in the batch of all processes, `(N,)`; `None` where this is all of it.
        total: rows of the batch of all processes.
    """

    images: Tensor
    labels: Tensor
    place: Tensor | None = None
    total: int = 0


class Stream(NamedTuple):
    """An order of the training images and a source of crops, each named by its seed."""

    order: int
    crops: int


class SeededMethod(NamedTuple):
    """One of the trainings that a method consists of: what is trained, itself or a simpler method, and its seed."""

    method: "Method"
    seed: int


class Method(Protocol):
    """A way to make an ensemble. Implementations are frozen dataclasses, and their fields are settings."""

    def parts(self, seed: int) -> tuple[SeededMethod, ...]:
        """The trainings it needs: usually itself; for a naive ensemble one single network per member."""
        ...

    def build(self, network: Network, seed: int) -> nn.Module:
        """What one training trains."""
        ...

    def streams(self, seed: int) -> tuple[Stream, ...]:
        """What a batch is made of: its rows are these streams one after another."""
        ...

    def loss(self, model: nn.Module, batch: Batch, weight_decay: float) -> dict[str, Tensor]:
        """What is minimised, `loss`, and what is logged besides: `cross_entropy` and `accuracy`."""
        ...

    def groups(self, model: nn.Module, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """The optimiser's parameter groups."""
        ...

    def logits(self, models: Sequence[nn.Module], images: Tensor, samples: int) -> Tensor:
        """`(predictions, N, classes)` from the trained parts in evaluation mode; dropout makes `samples`."""
        ...

    def passes(self, samples: int) -> int:
        """How often every image goes through a network to be classified."""
        ...
