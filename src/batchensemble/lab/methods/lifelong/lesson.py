"""One task as a method gets it: the data, how to train on it, and where a training is kept."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import batchensemble as be
from batchensemble.lifelong.data import Batch, Part, Pool
from batchensemble.lifelong.training import Checkpoint, Epoch, Loop, Training

from .account import Account
from .meter import Meter

MOST_TASKS = 2**16
"""Of a run; seeds of tasks are counted in steps of it."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """A task to learn.

    Args:
        number: of the task, from 0.
        part: its training rows and how many classes they have.
        training: how a network is trained on a task.
        folder: keeps every training that a method does for the task, so that a method that was killed only repeats
            what lies between them; and what each of them took.
        meter: counts what is computed.
        history: every epoch of every training so far, in order.
    """

    number: int
    part: Part
    training: Training
    folder: Path | None = None
    meter: Meter = field(default_factory=Meter)
    history: list[Epoch] = field(default_factory=list)

    @property
    def classes(self) -> int:
        """How many classes the task has."""
        return self.part.classes

    def seed_in(self, run: int) -> int:
        """The task's own seed in the run of a seed: no two tasks of any two runs have the same."""
        return MOST_TASKS * run + self.number

    def metered(self, account: Account) -> Training:
        """The training with a meter at every step, and an account of every epoch."""
        return replace(self.training, around_step=self.meter.around_step, after_epoch=account.note)

    def train(
        self,
        module: nn.Module,
        logits: Callable[[Tensor], Tensor],
        trained: nn.Module,
        *,
        phase: str = "only",
        epochs: int | None = None,
        weight_decay: float | None = None,
        part: Part | None = None,
        penalty: Callable[[], Tensor] | None = None,
        after_step: Callable[[], None] | None = None,
    ) -> float:
        """Trains part of a network on the task; returns the training accuracy of the last epoch.

        Args:
            module: holds everything that the training changes.
            logits: of the task for a batch of images.
            trained: the part that trains.
            phase: names the training, where a method does several for a task.
            epochs: instead of the lesson's.
            weight_decay: instead of the lesson's.
            part: other rows than the lesson's.
            penalty: added to the loss.
            after_step: called after every step.
        """
        account = self.account(phase)
        training = replace(self.metered(account), epochs=self.training.epochs if epochs is None else epochs)
        decay = training.weight_decay if weight_decay is None else weight_decay

        def objective(batch: Batch) -> tuple[Tensor, Tensor]:
            answers = logits(batch.x)
            loss = training.loss(answers, batch.y)
            return loss + penalty() if penalty else loss, answers

        groups = be.parameter_groups(trained, training.lr, decay)
        pool, checkpoint = Pool((part or self.part,)), self._checkpoint(phase)
        done = Loop(module, objective, groups, pool, training, checkpoint, after_step=after_step).run()
        account.settle(len(done))
        self.history.extend(done)
        return done[-1].accuracy if done else 0.0

    def seen(self, x: Tensor, seed: int) -> Tensor:
        """Inputs as training sees them, with crops that follow from the seed."""
        if self.training.augment is None:
            return x
        with torch.random.fork_rng([x.device] if x.is_cuda else []):
            torch.manual_seed(seed)
            return self.training.augment(x)

    def account(self, phase: str = "only") -> Account:
        """What a training of this task takes, and what it took before this process."""
        return Account(self.meter, self.folder and self.folder / f"task-{self.number}-{phase}.json")

    def _checkpoint(self, phase: str) -> Checkpoint | None:
        if self.folder is None:
            return None
        identity: dict[str, Any] = {"task": self.number, "phase": phase}
        return Checkpoint(self.folder / f"task-{self.number}-{phase}.pt", identity)


def new_head(features: int, classes: int, seed: int) -> nn.Linear:
    """A linear head whose start follows from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Linear(features, classes)


def statistics(module: nn.Module) -> int:
    """Numbers that a module keeps and does not train: running means and variances.

    Examples:
        >>> statistics(nn.BatchNorm2d(4))
        8
    """
    return sum(buffer.numel() for buffer in module.buffers() if buffer.is_floating_point())
