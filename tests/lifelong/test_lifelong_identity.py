"""A training goes on with the rows, functions and optimiser that it began with, or it starts anew and says so."""

import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_tasks import QUICK, data, net
from torch import Tensor, nn
from torch.utils.data import Dataset

from batchensemble.lifelong import Epoch, Learner, Training
from batchensemble.lifelong.data import Part
from batchensemble.lifelong.identity import of_function, of_rows

X, Y = data(0)


def cut_short(folder: Path, rows: Any, training: Training, **options: Any) -> None:
    def stop(epoch: Epoch) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Learner(net(), head=32, folder=folder, training=training).learn(rows, "a", progress=stop, **options)


def epochs_left(folder: Path, rows: Any, training: Training, **options: Any) -> list[int]:
    """The epochs that a new process trains."""
    told: list[Epoch] = []
    learner = Learner(net(), head=32, folder=folder, training=training)
    learner.learn(rows, "a", progress=told.append, **options)
    return [epoch.epoch for epoch in told]


def sgd(groups: Any, momentum: float = 0.9) -> torch.optim.Optimizer:
    return torch.optim.SGD(groups, momentum=momentum)


def smooth(logits: Tensor, y: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits, y, label_smoothing=0.5)


BEFORE = replace(QUICK, optimizer=sgd, loss=partial(nn.functional.cross_entropy, label_smoothing=0.1))
OTHERS: dict[str, tuple[str, tuple[Tensor, Tensor], dict[str, Any]]] = {
    "labels": ("data", (X, (Y + 1) % 3), {}),
    "one label": ("data", (X, Y.index_fill(0, torch.tensor([7]), 2)), {}),
    "inputs": ("data", (X + 1, Y), {}),
    "momentum": ("optimizer", (X, Y), {"optimizer": partial(sgd, momentum=0.5)}),
    "loss": ("loss", (X, Y), {"loss": smooth}),
    "smoothing": ("loss", (X, Y), {"loss": partial(nn.functional.cross_entropy, label_smoothing=0.5)}),
    "augmentation": ("augment", (X, Y), {"augment": lambda x: 0 * x}),
    "schedule": ("schedule", (X, Y), {"schedule": lambda done: 1.0}),
}


@pytest.mark.parametrize(("what", "rows", "changed"), OTHERS.values(), ids=OTHERS)
def test_a_training_with_something_else_starts_anew(
    tmp_path: Path, what: str, rows: tuple[Tensor, Tensor], changed: dict[str, Any]
) -> None:
    cut_short(tmp_path, (X, Y), BEFORE)
    with pytest.warns(UserWarning, match=f"of another training with other {what}, which is given up"):
        assert epochs_left(tmp_path, rows, replace(BEFORE, **changed)) == [1, 2]


def test_a_training_with_equal_rows_and_functions_goes_on(tmp_path: Path) -> None:
    cut_short(tmp_path, (X, Y), BEFORE)
    again = replace(BEFORE, loss=partial(nn.functional.cross_entropy, label_smoothing=0.1))
    assert epochs_left(tmp_path, (X.clone(), Y.clone()), again) == [2]


def test_a_task_that_would_look_at_another_one_starts_anew(tmp_path: Path) -> None:
    def stop(epoch: Epoch) -> None:
        raise KeyboardInterrupt

    learner = Learner(net(), head=32, laterals=1, folder=tmp_path, training=QUICK)
    learner.learn_together({"first": data(1), "second": data(2)})
    with pytest.raises(KeyboardInterrupt):
        learner.learn(data(3), "a", progress=stop)
    learner.forget("first")
    with pytest.warns(UserWarning, match="of another training with other laterals, which is given up"):
        learner.learn(data(3), "a")
    assert learner.network.heads[-1].sources == ("second",)


class Rows(Dataset[Any]):
    """Rows that are read one by one, each with a noise of its own."""

    def __init__(self, noise: Callable[[], float] = lambda: 0.0, shift: float = 0.0) -> None:
        self.noise, self.shift = noise, shift
        self.readers: set[int] = set()

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.readers.add(os.getpid())
        return X[index] + self.noise() + self.shift, int(Y[index])


NOISES: dict[str, Callable[[], float]] = {
    "none": lambda: 0.0,
    "torch's": lambda: torch.rand(()).item(),
    "Python's": random.random,
    "NumPy's": np.random.random,
    "its own": np.random.default_rng().random,
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_a_dataset_goes_on_whoever_draws_its_random_numbers(tmp_path: Path, noise: Callable[[], float]) -> None:
    cut_short(tmp_path, Rows(noise), QUICK, classes=3)
    assert epochs_left(tmp_path, Rows(noise), QUICK, classes=3) == [2]


@pytest.mark.parametrize("noise", ["none", "torch's", "Python's", "NumPy's"])
def test_a_dataset_with_other_rows_starts_anew(tmp_path: Path, noise: str) -> None:
    cut_short(tmp_path, Rows(NOISES[noise]), QUICK, classes=3)
    with pytest.warns(UserWarning, match="of another training with other data"):
        assert epochs_left(tmp_path, Rows(NOISES[noise], shift=1.0), QUICK, classes=3) == [1, 2]


def test_a_dataset_that_workers_read_is_not_read_here() -> None:
    alone, with_workers = Rows(NOISES["torch's"]), Rows(NOISES["torch's"])
    expected = of_rows(Part.of("a", alone, 3))
    assert None not in expected
    assert of_rows(Part.of("a", with_workers, 3), workers=2) == expected, "a training goes on with other workers"
    assert alone.readers == {os.getpid()}
    assert not with_workers.readers, "or a file opened here would be shared with every worker"


def test_a_dataset_is_the_same_wherever_torch_puts_tensors_by_default() -> None:
    expected = of_rows(Part.of("a", Rows(NOISES["torch's"]), 3))
    with torch.device("meta"):
        assert of_rows(Part.of("a", Rows(NOISES["torch's"]), 3)) == expected


@pytest.mark.parametrize("noise", ["torch's", "Python's", "NumPy's"])
def test_the_callers_random_numbers_stay_as_they_are(noise: str) -> None:
    drawn = []
    for rows in (Rows(NOISES[noise]), Rows()):
        torch.manual_seed(0), random.seed(0), np.random.seed(0)
        of_rows(Part.of("a", rows, 3))
        drawn.append(NOISES[noise]())
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("noise", ["torch's", "Python's", "NumPy's"])
def test_a_dataset_that_seldom_changes_its_rows_is_always_the_same(noise: str) -> None:
    rows = Rows(lambda: float(NOISES[noise]() < 0.1))  # two times eight rows are often equal by chance
    assert len({of_rows(Part.of("a", rows, 3)) for _ in range(20)}) == 1


def test_some_inputs_of_many_and_all_labels_count() -> None:
    x, y = torch.zeros(10_000, 2), torch.arange(10_000) % 3
    rows = of_rows(Part.of("a", (x, y)))
    last = x.clone()
    last[-1] = 1
    assert of_rows(Part.of("a", (last, y)))[0] != rows[0]
    for place in (1234, 9999):
        assert of_rows(Part.of("a", (x, y.index_fill(0, torch.tensor([place]), (place + 1) % 3))))[1] != rows[1]


def test_functions_are_known_by_their_names() -> None:
    assert of_function(smooth) == f"{__name__}.smooth"
    assert of_function(nn.CrossEntropyLoss()) == "torch.nn.modules.loss.CrossEntropyLoss"
    assert of_function(Rows().__getitem__) == f"{__name__}.Rows.__getitem__"
    assert of_function(None) == "builtins.NoneType"
    assert of_function(partial(smooth, 1, y={(2, 3): X})) == f'{__name__}.smooth [[1], {{"y": {{}}}}]'
