"""Learns a stream of tasks with one method, and measures accuracy, forgetting and cost."""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import torch

from batchensemble.lab.methods.lifelong import (
    Finetune,
    Method,
    Network,
    Trunk,
    lenet_trunk,
    method_from,
    resnet18_trunk,
    resnet50_trunk,
    settings_of,
)
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run
from batchensemble.lab.studies.lifelong.course import Course, course_metrics
from batchensemble.lab.studies.lifelong.streams import Stream, open_stream
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.devices import Precision, start_fabric
from batchensemble.lifelong import Training
from batchensemble.locks import locked

NETWORKS: dict[str, Callable[[torch.Generator, int], Trunk]] = {
    "lenet": lambda generator, _: lenet_trunk(generator),
    "resnet18": lambda generator, filters: resnet18_trunk(generator, filters or 20),
    "resnet50": lambda generator, filters: resnet50_trunk(generator, filters or 64),
}
"""Plain networks by name; zero filters stands for the network's usual number."""


@dataclass(frozen=True)
class Settings:
    """A stream of tasks and how to learn it; the defaults are the paper's Split-CIFAR100, as far as it is stated.

    Args:
        method: the method that learns the tasks.
        data: name of the data set.
        classes: classes per task.
        tasks: number of tasks.
        share: fraction of the training images to use.
        network: `lenet`, `resnet18` (with fewer filters) or `resnet50`.
        filters: filters of the first layer; zero for the network's usual number.
        epochs: epochs per training.
        batch: rows per step.
        lr: learning rate.
        weight_decay: the optimiser's weight decay.
        pad: largest shift of a training image.
        precision: `fp32` or `bf16`.
        ask: after every task, test `all` tasks so far or only the `new` one.
        workers: processes that read images from folders.
    """

    method: Method = field(default_factory=Finetune)
    data: str = "cifar100"
    classes: int = 5
    tasks: int = 20
    share: float = 1.0
    network: str = "resnet18"
    filters: int = 0
    epochs: int = 50
    batch: int = 64
    lr: float = 0.05
    weight_decay: float = 5e-4
    pad: int = 4
    precision: Precision = "fp32"
    ask: Literal["all", "new"] = "all"
    workers: int = 0

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            raise ValueError(f"network must be one of {', '.join(NETWORKS)}; got {self.network!r}")

    def settings(self) -> dict[str, Any]:
        """The settings as plain JSON."""
        return {**vars(self), "method": settings_of(self.method)}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build the settings from JSON."""
        return cls(**{**settings, "method": method_from(settings["method"])})

    def training(self, stream: Stream, seed: int, device: torch.device) -> Training:
        """The settings with which the library's loop trains a task."""
        half = torch.bfloat16 if self.precision == "bf16" and device.type == "cuda" else None
        return Training(
            epochs=self.epochs,
            batch_size=self.batch,
            lr=self.lr,
            weight_decay=self.weight_decay,
            seed=seed,
            workers=self.workers,
            autocast=half,
            augment=stream.augment,
        )


def run(run: Run, context: Context) -> Record:
    """Learn all tasks of the run's stream, resuming where an earlier process was killed."""
    began = time.time()
    settings = Settings.of(run.settings)
    device = start_fabric(context.device, 1).device
    if device.type == "cuda":
        gc.collect()  # earlier work may hold memory in reference cycles
        torch.cuda.reset_peak_memory_stats(device)
    folder = context.work / "lifelong" / run.key
    stream = open_stream(
        settings.data,
        settings.classes,
        share=settings.share,
        seed=run.seed,
        pad=settings.pad,
        root=context.data,
    )
    with locked(folder, wait=context.wait):
        student = settings.method.begin(_network(settings, device), run.seed, folder / "learner")
        training = settings.training(stream, run.seed, device)
        course = Course(stream, student, training, settings.ask, device, folder)
        name = settings_of(settings.method)["name"]
        context.progress.start(f"{name}, seed {run.seed}", settings.tasks)
        for number in range(settings.tasks):
            course.attend(number)
            context.progress.advance(f"accuracy {course.matrix[-1][-1]:.1%}")
        context.progress.end()
    return Record(run, course_metrics(course), Provenance.now(hardware(device), since=began))


def _network(settings: Settings, device: torch.device) -> Network:
    def network(generator: torch.Generator) -> Trunk:
        trunk = NETWORKS[settings.network](generator, settings.filters)
        layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
        return trunk.to(device, memory_format=layout)  # type: ignore[call-overload, no-any-return]

    return network


LIFELONG = Study("lifelong", run)
