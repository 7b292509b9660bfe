"""Lifelong learning: one member per task, nothing forgotten."""

from batchensemble.lifelong.data import TaskData
from batchensemble.lifelong.learner import Learner
from batchensemble.lifelong.stall import StalledTask
from batchensemble.lifelong.training import Epoch, Training
from batchensemble.optim import Diverged

__all__ = ["Diverged", "Epoch", "Learner", "StalledTask", "TaskData", "Training"]


def __dir__() -> list[str]:
    return __all__
