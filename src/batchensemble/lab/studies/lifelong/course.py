"""A student goes through a stream of tasks: what it learns, what it remembers, and what that costs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from batchensemble import metrics
from batchensemble.lab.methods.lifelong import Lesson, Student
from batchensemble.lab.studies.lifelong.streams import Stream
from batchensemble.lab.training.log import read_lines, write_lines
from batchensemble.lifelong import Training
from batchensemble.lifelong.data import Part

AT_ONCE = 500  # test images per forward pass
MARKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # numbers of tasks at which costs are recorded


@dataclass(eq=False)
class Course:
    """A student, its tasks and its results so far.

    Args:
        stream: the tasks.
        student: learns them.
        training: how a task is trained.
        ask: after every task, test `all` tasks so far or only the `new` one.
        device: where to compute.
        folder: where trainings and the diary are kept.
        tests: test sets of the tasks so far.
        diary: a line of numbers per task.
        matrix: accuracy on every task so far, after every task.
    """

    stream: Stream
    student: Student
    training: Training
    ask: Literal["all", "new"]
    device: torch.device
    folder: Path
    tests: list[Part] = field(default_factory=list)
    diary: list[dict[str, float]] = field(default_factory=list)
    matrix: list[list[float]] = field(default_factory=list)

    def attend(self, number: int) -> None:
        """Have the student learn a task, and test it."""
        train, test = self.stream.task(number)
        lesson = Lesson(number, train, self.training, self.folder / "trainings")
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
        return range(number + 1) if self.ask == "all" else range(number, number + 1)

    def _accuracy(self, task: int) -> float:
        test, right = self.tests[task], 0
        for start in range(0, len(test), AT_ONCE):
            x, y = test.rows(range(start, min(start + AT_ONCE, len(test))))
            answers = self.student.logits(self.stream.view(x.to(self.device)), task).argmax(1)
            right += int((answers.cpu() == y.cpu()).sum())
        return right / len(test)


def course_metrics(course: Course) -> dict[str, Any]:
    """All metrics of a course."""
    column = {name: [line[name] for line in course.diary] for name in course.diary[0]}
    kept = [p + r for p, r in zip(column["parameters"], column["remembered"], strict=True)]
    learnt = [row[-1] for row in course.matrix]
    found: dict[str, Any] = {
        "tasks": len(course.matrix),
        "epochs": course.training.epochs,
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
    return {**found, **_remembered(course)} if course.ask == "all" else found


def _growth(column: Mapping[str, list[float]], kept: list[float]) -> dict[str, list[float]]:
    """Costs against the number of tasks: means per task since the previous mark, and numbers kept at each."""
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
    """The matrix of accuracies, NaN for tasks not learned yet, and the metrics that follow from it."""
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
