"""How a task is trained, and what is told about every epoch of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from batchensemble.lifelong.identity import of_function
from batchensemble.optim import half_cosine

Groups = list[dict[str, Any]]
NUMBERS = ("epochs", "batch_size", "lr", "weight_decay", "fast_lr_scale", "seed")
FUNCTIONS = ("loss", "augment", "schedule")


@dataclass(frozen=True)
class Epoch:
    """What happened in one pass, measured while training.

    Attributes:
        names: the tasks that train.
        epoch: counted from 1.
        epochs: how many there will be.
        loss: mean loss.
        accuracy: share of rows classified right while training.
        seconds: how long it took.
    """

    names: tuple[str, ...]
    epoch: int
    epochs: int
    loss: float
    accuracy: float
    seconds: float


def nesterov(groups: Groups) -> torch.optim.Optimizer:
    """Stochastic gradient descent with Nesterov's momentum of 0.9."""
    return torch.optim.SGD(groups, momentum=0.9, nesterov=True)


@dataclass(frozen=True)
class Training:
    """How a task is trained.

    Args:
        epochs: passes over the task's rows; zero makes a task without training it.
        batch_size: rows per step.
        lr: learning rate.
        weight_decay: weight decay of shared weights and heads; vectors, biases and norms do not decay.
        fast_lr_scale: learning rate of r and s relative to `lr`.
        seed: seed for the order of rows and everything else drawn in training.
        workers: processes that read a dataset. A training may be resumed with more or fewer of them. Only for a dataset
            that draws random numbers itself does it then end differently: each process draws its own.
        autocast: a dtype to multiply in, such as `torch.bfloat16`.
        augment: changes a batch of inputs on its device, e.g. crops; draws from torch's default generator.
        loss: (logits, labels) to a scalar, the mean over rows. Of tasks with different numbers of classes that are
            learned together, it gets the rows of each number apart, and never sees a class that a row's task lacks.
        optimizer: parameter groups, each with its `lr` and `weight_decay`, to an optimiser.
        schedule: share of the training that is done, in `[0, 1)`, to a factor of all learning rates.
        around_step: number of a step, from 0 in every training, to a context that it runs in, e.g. a profiler's.
        after_epoch: called after every epoch, before its checkpoint is written, so that no checkpoint holds an epoch
            that this was not told about; after a kill in between, the epoch is repeated and reported again.
    """

    epochs: int = 10
    batch_size: int = 128
    lr: float = 0.1
    weight_decay: float = 5e-4
    fast_lr_scale: float = 1.0
    seed: int = 0
    workers: int = 0
    autocast: torch.dtype | None = None
    augment: Callable[[Tensor], Tensor] | None = field(default=None, repr=False)
    loss: Callable[[Tensor, Tensor], Tensor] = field(default=F.cross_entropy, repr=False)
    optimizer: Callable[[Groups], torch.optim.Optimizer] = field(default=nesterov, repr=False)
    schedule: Callable[[float], float] = field(default=half_cosine, repr=False)
    around_step: Callable[[int], AbstractContextManager[Any]] | None = field(default=None, repr=False)
    after_epoch: Callable[[Epoch], None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.batch_size < 1:
            raise ValueError(
                f"epochs must be at least 0 and batch_size at least 1, got {self.epochs} and {self.batch_size}"
            )

    def identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with: everything that changes what is learned, except the optimiser."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        functions = {name: of_function(getattr(self, name)) for name in FUNCTIONS}
        return {"settings": numbers, "autocast": str(self.autocast), **functions}
