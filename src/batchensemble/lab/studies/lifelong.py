"""Learns a stream of tasks with one method, and measures accuracy, forgetting and cost."""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import torch

from batchensemble import metrics
from batchensemble.disk import locked
from batchensemble.lab.methods.lifelong import (
    Finetune,
    Lesson,
    Method,
    Network,
    Student,
    Trunk,
    lenet_trunk,
    method_from,
    resnet18_trunk,
    resnet50_trunk,
    settings_of,
)
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.studies.task_stream import Stream, open_stream
from batchensemble.lab.training.devices import Precision, start_fabric
from batchensemble.lab.training.log import read_lines, write_lines
from batchensemble.lifelong import Training
from batchensemble.lifelong.data import Part

NETWORKS: dict[str, Callable[[torch.Generator, int], Trunk]] = {
    "lenet": lambda generator, _: lenet_trunk(generator),
    "resnet18": lambda generator, filters: resnet18_trunk(generator, filters or 20),
    "resnet50": lambda generator, filters: resnet50_trunk(generator, filters or 64),
}
"""Plain networks by name; zero filters stands for the network's usual number."""
AT_ONCE = 500  # test images per forward pass
MARKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # numbers of tasks at which costs are recorded


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
        """Return the settings as plain JSON."""
        return {**vars(self), "method": settings_of(self.method)}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build the settings from JSON."""
        return cls(**{**settings, "method": method_from(settings["method"])})

    def training(self, stream: Stream, seed: int, device: torch.device) -> Training:
        """Return the settings with which the library's loop trains a task."""
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


@dataclass(eq=False)
class Course:
    """A student, its tasks and its results so far.

    Args:
        settings: the study's settings.
        seed: seeds everything in the course.
        stream: the tasks.
        student: learns them.
        device: where to compute.
        folder: where trainings and the diary are kept.
        tests: test sets of the tasks so far.
        diary: a line of numbers per task.
        matrix: accuracy on every task so far, after every task.
    """

    settings: Settings
    seed: int
    stream: Stream
    student: Student
    device: torch.device
    folder: Path
    tests: list[Part] = field(default_factory=list)
    diary: list[dict[str, float]] = field(default_factory=list)
    matrix: list[list[float]] = field(default_factory=list)

    def attend(self, number: int) -> None:
        """Have the student learn a task, and test it."""
        train, test = self.stream.task(number)
        training = self.settings.training(self.stream, self.seed, self.device)
        lesson = Lesson(number, train, training, self.folder / "trainings")
        clock, processor = time.perf_counter(), time.process_time()
        self.student.learn(lesson)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        meter = lesson.meter
        line = {
            "seconds": time.perf_counter() - clock + meter.former_seconds,
            "processor_seconds": time.process_time() - processor + meter.former_processor_seconds,
            "operations": meter.operations,
            "train_accuracy": lesson.history[-1].accuracy if lesson.history else float("nan"),
            "parameters": self.student.parameters_kept(),
            "remembered": self.student.numbers_remembered(),
        }
        self._note(number, line)
        self.tests.append(test)
        self.matrix.append([self._accuracy(task) for task in self._asked(number)])

    def _note(self, number: int, line: dict[str, float]) -> None:
        """Write a line to the diary, unless an earlier process, killed since, already did."""
        path = self.folder / "diary.jsonl"
        lines = read_lines(path)
        if number >= len(lines):
            lines.append(line)
            write_lines(path, lines)
        self.diary.append(lines[number])

    def _asked(self, number: int) -> range:
        return range(number + 1) if self.settings.ask == "all" else range(number, number + 1)

    def _accuracy(self, task: int) -> float:
        test, right = self.tests[task], 0
        for start in range(0, len(test), AT_ONCE):
            x, y = test.rows(range(start, min(start + AT_ONCE, len(test))))
            answers = self.student.logits(self.stream.view(x.to(self.device)), task).argmax(1)
            right += int((answers.cpu() == y.cpu()).sum())
        return right / len(test)


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
        course = Course(settings, run.seed, stream, student, device, folder)
        name = settings_of(settings.method)["name"]
        context.progress.start(f"{name}, seed {run.seed}", settings.tasks)
        for number in range(settings.tasks):
            course.attend(number)
            context.progress.advance(f"accuracy {course.matrix[-1][-1]:.1%}")
        context.progress.end()
    return Record(run, report(course), Provenance.now(hardware(device), since=began))


def _network(settings: Settings, device: torch.device) -> Network:
    def network(generator: torch.Generator) -> Trunk:
        trunk = NETWORKS[settings.network](generator, settings.filters)
        layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
        return trunk.to(device, memory_format=layout)  # type: ignore[call-overload, no-any-return]

    return network


def report(course: Course) -> dict[str, Any]:
    """Return all metrics of a course."""
    column = {name: [line[name] for line in course.diary] for name in course.diary[0]}
    kept = [p + r for p, r in zip(column["parameters"], column["remembered"], strict=True)]
    learnt = [row[-1] for row in course.matrix]
    found: dict[str, Any] = {
        "tasks": len(course.matrix),
        "epochs": course.settings.epochs,
        "task_accuracy": [round(accuracy, 5) for accuracy in learnt],
        "train_accuracy": [round(accuracy, 5) for accuracy in column["train_accuracy"]],
        "average_accuracy": sum(learnt) / len(learnt),
        "training_seconds": sum(column["seconds"]),
        "processor_seconds": sum(column["processor_seconds"]),
        "operations": sum(column["operations"]),
        "parameters": column["parameters"][-1],
        "numbers_kept": kept[-1],
        **_growth(column, kept),
    }
    if course.device.type == "cuda":
        found["peak_memory"] = torch.cuda.max_memory_allocated(course.device)
    return {**found, **_remembered(course)} if course.settings.ask == "all" else found


def _growth(column: Mapping[str, list[float]], kept: list[float]) -> dict[str, list[float]]:
    """Return costs against the number of tasks: means per task since the previous mark, and numbers kept at each."""
    marks = [mark for mark in MARKS if mark < len(kept)] + [len(kept)]
    spans = [slice(low, high) for low, high in zip([0, *marks[:-1]], marks, strict=True)]

    def means(name: str) -> list[float]:
        return [sum(column[name][span]) / len(column[name][span]) for span in spans]

    return {
        "growth_tasks": [float(mark) for mark in marks],
        "growth_seconds": means("seconds"),
        "growth_processor_seconds": means("processor_seconds"),
        "growth_operations": means("operations"),
        "growth_numbers_kept": [kept[mark - 1] for mark in marks],
    }


def _remembered(course: Course) -> dict[str, Any]:
    """Return the matrix of accuracies, NaN for tasks not learned yet, and the metrics that follow from it."""
    tasks = len(course.matrix)
    matrix = torch.full((tasks, tasks), torch.nan, dtype=torch.float64)
    for row, accuracies in zip(matrix, course.matrix, strict=True):
        row[: len(accuracies)] = torch.tensor(accuracies, dtype=torch.float64)
    return {
        "matrix": matrix,
        "average_accuracy": metrics.average_accuracy(matrix),
        "seen_accuracy": metrics.seen_accuracy(matrix),
        "forgetting": metrics.forgetting(matrix),
        "backward_transfer": metrics.backward_transfer(matrix),
    }


LIFELONG = Study("lifelong", run)
