"""A task as a method receives it: the data, how to train on it, and where trainings are kept."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

import batchensemble as be
from batchensemble.lab.methods.lifelong.account import Account
from batchensemble.lab.methods.lifelong.meter import Meter
from batchensemble.lifelong import Epoch, Training
from batchensemble.lifelong.checkpoint import Checkpoint
from batchensemble.lifelong.data import Batch, Part, Pool
from batchensemble.lifelong.loop import Loop
from batchensemble.seeds import seeded

MOST_TASKS = 2**16
"""Most tasks in a run, and so the distance between the seeds of consecutive runs."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """A task to learn.

    Args:
        number: number of the task, from 0.
        part: its training rows and their number of classes.
        training: how a network is trained on a task.
        folder: keeps every training that a method runs for the task, so that a method that was killed repeats only
            what lies between them; and the cost of each.
        meter: counts operations.
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
        """The number of classes in the task."""
        return self.part.classes

    def seed_in(self, run: int) -> int:
        """The task's own seed, given that of the run; no two tasks of any runs share one."""
        # Not `seed_of`: in run 0, which records have, a task's seed is its number.
        return MOST_TASKS * run + self.number

    def new_head(self, features: int, run: int, body: nn.Module) -> nn.Linear:
        """An untrained linear head for the task, drawn by its seed in the run, on the device of the network below."""
        with seeded(self.seed_in(run)):
            return nn.Linear(features, self.classes).to(next(body.parameters()).device)

    def metered(self, account: Account) -> Training:
        """The training with every step metered and every epoch noted in the account."""
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
        """Train part of a network on the task; return the training accuracy of the last epoch.

        Args:
            module: holds everything that the training changes.
            logits: maps a batch of images to the task's logits.
            trained: the part to train.
            phase: name of the training, if a method runs several for a task.
            epochs: epochs to use instead of the lesson's.
            weight_decay: weight decay to use instead of the lesson's.
            part: rows to use instead of the lesson's.
            penalty: added to the loss.
            after_step: called after every step.
        """
        account = self.account(phase)
        training = replace(self.metered(account), epochs=self.training.epochs if epochs is None else epochs)
        decay = training.weight_decay if weight_decay is None else weight_decay

        def objective(batch: Batch) -> tuple[Tensor, Tensor]:
            answers = logits(batch.x)
            loss = training.loss(answers, batch.y)
            return (loss + penalty() if penalty else loss), answers

        groups = be.parameter_groups(trained, training.lr, decay)
        pool, checkpoint = Pool((part or self.part,)), self._checkpoint(phase)
        done = Loop(module, objective, groups, pool, training, checkpoint, after_step=after_step).run()
        account.settle(len(done))
        self.history.extend(done)
        return done[-1].accuracy if done else 0.0

    def augmented(self, x: Tensor, seed: int) -> Tensor:
        """Inputs as training sees them, with crops determined by the seed."""
        if self.training.augment is None:
            return x
        with seeded(seed, x.device):
            return self.training.augment(x)

    def account(self, phase: str = "only") -> Account:
        """The account of a training of this task, including what earlier processes did."""
        return Account(self.meter, self.folder and self.folder / f"task-{self.number}-{phase}.json")

    def _checkpoint(self, phase: str) -> Checkpoint | None:
        if self.folder is None:
            return None
        identity: dict[str, Any] = {"task": self.number, "phase": phase}
        return Checkpoint(self.folder / f"task-{self.number}-{phase}.pt", identity)
