"""BatchEnsemble: the library's own learner, a member per task."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from batchensemble.lab.methods.lifelong.lesson import Lesson
from batchensemble.lab.methods.lifelong.method import Network, Student
from batchensemble.lifelong import Learner, StalledTask


@dataclass(frozen=True)
class BatchEnsemble:
    """`batchensemble.lifelong.Learner` with its options; the defaults are the paper's.

    Args:
        rank: number of rank-one terms in a task's fast matrix.
        norm: each task's own `statistics` with shared scales and shifts (the paper's number of parameters), everything
            frozen after the first task (`shared`), or each task's own norms (`member`).
        init: initial values of r and s.
        start: how later tasks start: as `init` says, from the `first` task or from the most `similar` one.
        laterals: number of earlier tasks that a new one is connected to.
        lr_scale: learning rate of later tasks relative to that of the first.
    """

    rank: int = 1
    norm: Literal["shared", "statistics", "member"] = "statistics"
    init: str = "sign"
    start: Literal["init", "first", "similar"] = "init"
    laterals: int = 0
    lr_scale: float = 1.0

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> "LearnerStudent":
        """A learner around a new network."""
        trunk = network(torch.Generator().manual_seed(seed))
        learner = Learner(
            trunk,
            trunk.features,
            rank=self.rank,
            norm=self.norm,
            init=self.init,
            start=self.start,
            laterals=self.laterals,
            seed=seed,
            folder=folder,
        )
        return LearnerStudent(learner, self.lr_scale)


class LearnerStudent(Student):
    """The library's learner as a student; it keeps its own trainings."""

    def __init__(self, learner: Learner, lr_scale: float) -> None:
        super().__init__()
        self.learner, self.lr_scale = learner, lr_scale

    def learn(self, lesson: Lesson) -> None:
        """Learn a task, unless the learner's folder already has it."""
        name, account = str(lesson.number), lesson.account()
        if name in self.learner.tasks:
            account.settle(lesson.training.epochs)
            lesson.history.extend(account.history())
            return
        training = lesson.metered(account)
        if self.learner.tasks:
            training = replace(training, lr=training.lr * self.lr_scale)
        data, classes = lesson.part.data, lesson.classes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StalledTask)  # records show how well a task is learned
            done = self.learner.learn(data, name, classes=classes, training=training)
        account.settle(len(done))
        lesson.history.extend(done)

    @torch.no_grad()
    def logits(self, images: Tensor, task: int) -> Tensor:
        """The logits of the task's member and head."""
        answers: Tensor = self.learner(images, task)
        return answers
