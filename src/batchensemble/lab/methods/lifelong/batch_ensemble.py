"""BatchEnsemble: the library's own learner, a member per task."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from batchensemble.lifelong import Learner, StalledTask

from .lesson import Lesson, statistics
from .method import Network


@dataclass(frozen=True)
class BatchEnsemble:
    """`batchensemble.lifelong.Learner` with its options; the defaults are the paper's.

    Args:
        rank: components of a task's fast matrix.
        norm: a task's own `statistics` with common scales and shifts (the paper's number of parameters), all frozen
            after the first task (`shared`), or norms of a task's own (`member`).
        init: of r and s.
        start: how later tasks begin: as `init` says, as the `first` task or as the most `similar` one.
        laterals: how many earlier tasks a new one looks at.
        lr_scale: learning rate of later tasks relative to the first one's.
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


class LearnerStudent:
    """The library's learner in the place of a student; it keeps its own trainings."""

    def __init__(self, learner: Learner, lr_scale: float) -> None:
        self.learner, self.lr_scale = learner, lr_scale

    def learn(self, lesson: Lesson) -> None:
        """Learns a task, unless the learner's folder has it."""
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
            warnings.simplefilter("ignore", StalledTask)  # how well a task is learnt is recorded
            done = self.learner.learn(data, name, classes=classes, training=training)
        account.settle(len(done))
        lesson.history.extend(done)

    @torch.no_grad()
    def logits(self, images: Tensor, task: int) -> Tensor:
        """What the task's member and head say."""
        answers: Tensor = self.learner(images, task)
        return answers

    def parameters_kept(self) -> int:
        """Shared weights, vectors and heads."""
        return sum(parameter.numel() for parameter in self.learner.parameters())

    def numbers_remembered(self) -> int:
        """The norms' statistics."""
        return statistics(self.learner)
