"""What every way to learn tasks must do, and what sets some of them apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from torch import Tensor, nn

from batchensemble.lab.methods.lifelong import (
    DEN,
    EWC,
    PNN,
    RCL,
    BatchEnsemble,
    BNTuned,
    Finetune,
    Lesson,
    Method,
    Separate,
    Student,
    Trunk,
    method_from,
    settings_of,
)
from batchensemble.lab.methods.lifelong.meter import Meter
from batchensemble.lifelong import Training
from batchensemble.lifelong.checkpoint import Checkpoint
from batchensemble.lifelong.data import Part

QUICK = Training(epochs=2, batch_size=16, lr=0.05)
METHODS: dict[str, Method] = {
    "finetune": Finetune(),
    "ewc": EWC(strength=10.0, rows=8),
    "pnn": PNN(),
    "bn_tuned": BNTuned(),
    "den": DEN(share=0.25, split=1e-4),
    "rcl": RCL(trials=2, choices=5, most=0.5),
    "separate": Separate(),
    "batch_ensemble": BatchEnsemble(),
}
FORGETS = {"finetune", "ewc", "den"}


def chain(generator: torch.Generator) -> Trunk:
    """A tiny LeNet."""
    first = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2))
    second = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU())
    return drawn(Trunk([first, second, nn.Sequential(nn.Linear(8, 6), nn.ReLU())], (4, 8, 6)), generator)


def normed(generator: torch.Generator) -> Trunk:
    """A tiny network with norms."""
    first = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())
    return drawn(Trunk([first, nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten())], (4, 16)), generator)


def drawn(trunk: Trunk, generator: torch.Generator) -> Trunk:
    for parameter in trunk.parameters():
        if parameter.ndim > 1:
            nn.init.kaiming_normal_(parameter, generator=generator)
    for layer in trunk.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)
    return trunk


def part(number: int, classes: int = 3) -> Part:
    generator = torch.Generator().manual_seed(number)
    y = torch.arange(48) % classes
    prototypes = torch.randn(classes, 1, 8, 8, generator=generator)
    return Part.of(str(number), (prototypes[y] + 0.5 * torch.randn(48, 1, 8, 8, generator=generator), y))


def begin(name: str, seed: int = 0, folder: Path | None = None) -> Student:
    return METHODS[name].begin(normed if name == "bn_tuned" else chain, seed, folder)


def taught(name: str, tasks: int = 3, folder: Path | None = None) -> Student:
    student = begin(name, folder=folder and folder / "learner")
    for number in range(tasks):
        student.learn(Lesson(number, part(number), QUICK, folder))
    return student


def answers(student: Student, task: int) -> Tensor:
    x, _ = part(task).rows(range(48))
    return student.logits(x, task)


@pytest.mark.parametrize("name", METHODS)
def test_a_student_answers_for_every_task_without_gradients(name: str) -> None:
    student = taught(name)
    for task in range(3):
        logits = answers(student, task)
        assert logits.shape == (48, 3)
        assert not logits.requires_grad
        assert torch.equal(logits, answers(student, task)), "asking changes nothing"


@pytest.mark.parametrize("name", METHODS)
def test_a_student_learns(name: str) -> None:
    student = begin(name)
    longer = Training(epochs=25, batch_size=16, lr=0.05)
    for number in range(2):
        student.learn(Lesson(number, part(number), longer))
        _, y = part(number).rows(range(48))
        assert (answers(student, number).argmax(1) == y).float().mean() > 0.8


@pytest.mark.parametrize("name", METHODS)
def test_who_forgets_and_who_does_not(name: str) -> None:
    student = taught(name, tasks=1)
    before = answers(student, 0)
    student.learn(Lesson(1, part(1), QUICK))
    same = torch.equal(answers(student, 0), before)
    assert same == (name not in FORGETS)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_student(name: str) -> None:
    torch.manual_seed(1)
    first = taught(name, tasks=2)
    torch.manual_seed(2)
    assert torch.equal(answers(first, 1), answers(taught(name, tasks=2), 1))


class Idle(Meter):
    """Of a lesson in which nothing is to be trained."""

    def around_step(self, step: int) -> NoReturn:
        raise AssertionError("an epoch was trained a second time")


@pytest.mark.parametrize("name", METHODS)
def test_kept_trainings_are_not_done_again(name: str, tmp_path: Path) -> None:
    whole = taught(name, folder=tmp_path)
    again = begin(name, folder=tmp_path / "learner")
    for number in range(3):
        again.learn(Lesson(number, part(number), QUICK, tmp_path, Idle()))
    for task in range(3):
        assert torch.equal(answers(again, task), answers(whole, task))


class Killed(BaseException):
    """What no method catches."""


class Mortal(Meter):
    """Dies in a step, unless all that is left are fewer."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    @contextmanager
    def around_step(self, step: int) -> Iterator[None]:
        self.left -= 1
        if self.left < 0:
            raise Killed
        with super().around_step(step):
            yield


def lessons(name: str, folder: Path, steps: int = 1000, training: Training = QUICK) -> list[Lesson]:
    """Two tasks by a process that lives for so many steps of each."""
    student = begin(name, folder=folder / "learner")
    given = [Lesson(number, part(number), training, folder, Mortal(steps)) for number in range(2)]
    for lesson in given:
        student.learn(lesson)
    return given


def taught_again_and_again(name: str, folder: Path, steps: int = 1000, training: Training = QUICK) -> list[Lesson]:
    """The lessons of the process that lived to the end, after at least two that did not."""
    deaths = 0
    while True:
        try:
            found = lessons(name, folder, steps, training)
        except Killed:
            deaths += 1
        else:
            assert deaths >= 2
            return found


def assert_same_course(found: list[Lesson], whole: list[Lesson]) -> None:
    assert [lesson.meter.operations for lesson in found] == [lesson.meter.operations for lesson in whole]
    assert [[epoch.loss for epoch in lesson.history] for lesson in found] == [
        [epoch.loss for epoch in lesson.history] for lesson in whole
    ]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_killed_again_and_again_has_taken_what_one_process_takes(name: str, tmp_path: Path) -> None:
    whole = lessons(name, tmp_path / "whole")
    found = taught_again_and_again(name, tmp_path / "killed", 5)  # not enough for a training, enough for an epoch
    assert_same_course(found, whole)
    assert all(lesson.meter.former_processor_seconds > 0 for lesson in found)
    assert not any(lesson.meter.former_processor_seconds for lesson in whole)


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", METHODS)
def test_a_kill_beside_the_only_checkpoint_of_a_training_loses_none_of_its_cost(
    name: str, written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, save, tries = replace(QUICK, epochs=1), Checkpoint.save, count()
    whole = lessons(name, tmp_path / "whole", training=short)

    def deadly(checkpoint: Checkpoint, state: dict[str, Any]) -> None:
        killed = written or next(tries) % 2 == 0  # who is killed before anything is written must live the next time
        if written or not killed:
            save(checkpoint, state)
        if killed:
            raise Killed

    monkeypatch.setattr(Checkpoint, "save", deadly)
    assert_same_course(taught_again_and_again(name, tmp_path / "killed", training=short), whole)


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_values(name: str) -> None:
    method = METHODS[name]
    assert method_from(settings_of(method)) == method


@pytest.mark.parametrize("name", METHODS)
def test_operations_are_counted(name: str) -> None:
    counts = []
    for epochs in (1, 3):
        student = begin(name)
        lesson = Lesson(0, part(0), Training(epochs=epochs, batch_size=16))
        student.learn(lesson)
        counts.append(lesson.meter.operations)
    assert counts[0] > 0
    if name != "ewc":  # whose Fisher information costs the same however long the training is
        assert counts[1] == 3 * counts[0]


def test_growth_of_what_is_kept() -> None:
    plain = sum(p.numel() for p in chain(torch.Generator()).parameters())
    head = 6 * 3 + 3
    kept = {name: [begin_and_count(name, tasks) for tasks in (1, 3)] for name in METHODS if name != "bn_tuned"}
    assert kept["finetune"] == kept["ewc"] == [plain + head, plain + 3 * head]
    assert kept["separate"] == [plain + head, 3 * (plain + head)]
    fast = (1 + 4 + 4) + (36 + 8 + 8) + (8 + 6 + 6)  # r, s and bias of every layer
    biases = 4 + 8 + 6
    assert kept["batch_ensemble"] == [plain - biases + fast + head, plain - biases + 3 * (fast + head)]
    assert kept["pnn"][1] > kept["separate"][1]
    assert kept["den"][1] > kept["finetune"][1]
    assert kept["rcl"][1] >= kept["finetune"][1]


def begin_and_count(name: str, tasks: int) -> int:
    return taught(name, tasks).parameters_kept()


def test_only_ewc_and_rcl_remember_more_than_they_answer_with() -> None:
    trunk = sum(p.numel() for p in chain(torch.Generator()).parameters())
    assert taught("ewc", 2).numbers_remembered() == 2 * trunk
    assert taught("rcl", 1).numbers_remembered() > 0
    assert {taught(n, 1).numbers_remembered() for n in METHODS if n not in ("ewc", "rcl", "bn_tuned")} == {0}
    assert taught("bn_tuned", 3).numbers_remembered() == 3 * 2 * 4  # statistics of every task


def test_bn_tuned_needs_norms() -> None:
    with pytest.raises(ValueError, match="needs a network with batch norms"):
        BNTuned().begin(chain, 0)


def test_bn_tuned_trains_norms_and_heads_only() -> None:
    student = taught("bn_tuned", 1)
    kernel = student.learner.network.ensemble.net.blocks[0][0].weight.clone()
    student.learn(Lesson(1, part(1), QUICK))
    net = student.learner.network.ensemble.net
    assert torch.equal(net.blocks[0][0].weight, kernel)
    assert net.blocks[0][1].weight.shape == (2, 4)
    assert not torch.equal(net.blocks[0][1].running_mean[0], net.blocks[0][1].running_mean[1])


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(ValueError, match="method must be one of finetune, ewc"):
        method_from({"name": "replay"})


def test_no_two_tasks_of_two_runs_begin_alike():
    seeds = {Lesson(number, None, None).seed_in(run) for number in range(3) for run in range(3)}
    assert len(seeds) == 9
    assert Lesson(2, None, None).seed_in(0) == 2  # as recorded runs had it
