"""The interface of every method that learns tasks one after another."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from batchensemble.lab.methods.lifelong.lesson import Lesson
from batchensemble.lab.methods.lifelong.trunk import Trunk

Network = Callable[[torch.Generator], Trunk]
"""Builds the plain network, without a head, on the device where it will train."""


class Student(nn.Module, ABC):
    """A method at work: it is given one task after another, and may be tested on any of them."""

    @abstractmethod
    def learn(self, lesson: Lesson) -> None:
        """Learn the next task; trainings kept in the lesson's folder are not repeated."""

    @abstractmethod
    def logits(self, images: Tensor, task: int) -> Tensor:
        """A task's logits `(N, classes)` for images, without gradients, in evaluation mode."""

    def parameters_kept(self) -> int:
        """Count the parameters needed to answer for every task learned so far: all of the module's, by default."""
        return sum(parameter.numel() for parameter in self.parameters())

    def numbers_remembered(self) -> int:
        """Count the other numbers kept: norms' statistics, and whatever else is needed to learn further tasks."""
        return sum(buffer.numel() for buffer in self.buffers() if buffer.is_floating_point())


class Method(Protocol):
    """A way to learn tasks. Implementations are frozen dataclasses whose fields are settings."""

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> Student:
        """A student that knows nothing yet; `folder` is for anything it keeps itself."""
        ...
