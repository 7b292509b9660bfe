"""What every way to learn tasks one after another answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from .lesson import Lesson
from .trunk import Trunk

Network = Callable[[torch.Generator], Trunk]
"""Makes the plain network, without a head, on the device where it will train."""


class Student(Protocol):
    """A method at work: it is given one task after another, and asked about any of them."""

    def learn(self, lesson: Lesson) -> None:
        """Learns the next task; trainings that are kept in the lesson's folder are not done again."""
        ...

    def logits(self, images: Tensor, task: int) -> Tensor:
        """A task's logits `(N, classes)` for images; without gradients, in evaluation mode."""
        ...

    def parameters_kept(self) -> int:
        """Parameters that are needed to answer for every task learnt so far."""
        ...

    def numbers_remembered(self) -> int:
        """Numbers that are kept besides: norms' statistics, and whatever is needed to learn further tasks."""
        ...


class Method(Protocol):
    """A way to learn tasks. Implementations are frozen dataclasses, and their fields are settings."""

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> Student:
        """A student that knows nothing; `folder` is for what it wants to keep itself."""
        ...
