"""Batches mix the rows of several tasks, and every label is checked before a head sees it."""

import re

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from batchensemble.lifelong.data import Part, Pool, batches, steps_of
from batchensemble.lifelong.identity import of_rows


class Pictures(Dataset):
    """A dataset that knows nothing of tensors' labels."""

    def __init__(self, rows: int, label: int = 1) -> None:
        self.rows, self.label = rows, label

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return torch.full((2,), float(row)), row % 2 * self.label


def pool() -> Pool:
    first = torch.arange(5.0).repeat(2, 1).T, torch.tensor([0, 1, 2, 0, 1])
    return Pool((Part.of("tensors", first), Part.of("pictures", Pictures(7), classes=2)))


def test_an_epoch_shows_every_row_once_with_its_own_task() -> None:
    epoch = batches(pool(), 4, seed=0)
    seen = [pair for batch in epoch for pair in zip(batch.task, batch.x[:, 0], strict=True)]
    expected = {(0, row) for row in range(5)} | {(1, row) for row in range(7)}
    assert len(seen) == 12
    assert {(int(task), int(row)) for task, row in seen} == expected


def test_the_order_follows_from_the_seed() -> None:
    def order(seed: int) -> list[float]:
        return torch.cat([batch.x[:, 0] for batch in batches(pool(), 3, seed)]).tolist()

    assert order(1) == order(1) != order(2)


def test_the_order_is_that_of_torchs_own_loader() -> None:
    """Records were made with it: a seed gives the same batches in every release."""
    every = pool().__getitems__(range(12))
    reference = DataLoader(
        range(12), 4, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(3), collate_fn=list
    )
    for batch, rows in zip(batches(pool(), 4, seed=3), reference, strict=True):
        assert torch.equal(batch.x, every.x[sorted(rows, key=lambda row: every.task[row])])


def test_a_rest_waits_unless_it_is_all_there_is() -> None:
    assert len(list(batches(pool(), 5, seed=0))) == steps_of(pool(), 5) == 2
    (only,) = batches(pool(), 100, seed=0)
    assert len(only.x) == 12
    assert steps_of(pool(), 100) == 1


def test_labels_keep_to_their_rows() -> None:
    for batch in batches(pool(), 4, seed=3):
        for x, y, task in zip(batch.x[:, 0], batch.y, batch.task, strict=True):
            assert int(y) == ([0, 1, 2, 0, 1][int(x)] if task == 0 else int(x) % 2)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match="task 'a' is a dataset, which cannot be asked for its labels: give classes="):
        Part.of("a", Pictures(3))
    with pytest.raises(ValueError, match=r"task 'a': labels must be int64 \(N,\), got torch.float32 \(3,\)"):
        Part.of("a", (torch.zeros(3, 1), torch.zeros(3)))
    with pytest.raises(ValueError, match="at least two classes"):
        Part.of("a", (torch.zeros(3, 1), torch.zeros(3, dtype=torch.int64)))
    with pytest.raises(ValueError, match=r"labels must lie in \[0, 2\); got 5"):
        list(batches(Pool((Part.of("a", Pictures(4, label=5), classes=2),)), 2, seed=0))
    with pytest.raises(ValueError, match=r"got -1"):
        Part.of("a", (torch.zeros(2, 1), torch.tensor([-1, 1])))
    with pytest.raises(ValueError, match="expected a label for each of 3 inputs, got 2"):
        Part.of("a", (torch.zeros(3, 1), torch.tensor([0, 1])))
    with pytest.raises(TypeError, match=r"expected inputs and labels, two tensors; got \(ndarray, ndarray\)"):
        Part.of("a", (np.zeros((2, 1)), np.array([0, 1])))
    with pytest.raises(TypeError, match=r"got \(Tensor\)"):
        Part.of("a", (torch.zeros(3, 1),))


@pytest.mark.parametrize("data", [DataLoader(Pictures(3)), zip("ab", [0, 1], strict=True), torch.zeros(3, 1)])
def test_rows_that_cannot_be_asked_for_one_by_one_are_refused(data) -> None:
    with pytest.raises(
        TypeError, match=rf"expected \(inputs, labels\) or a map-style dataset, got {type(data).__name__}"
    ):
        Part.of("a", data, classes=2)


class Shifted(TensorDataset):
    def __getitem__(self, row: int) -> tuple[torch.Tensor, ...]:
        x, y = super().__getitem__(row)
        return x + 100, y


def test_tensors_are_read_past_no_method_of_their_dataset() -> None:
    x, y = torch.zeros(4, 2), torch.arange(4) % 2
    with pytest.raises(ValueError, match="cannot be asked for its labels: give classes="):
        Part.of("shifted", Shifted(x, y))
    part = Part.of("shifted", Shifted(x, y), classes=2)
    assert part.rows([1, 2])[0].eq(100).all()
    assert of_rows(part) != of_rows(Part.of("plain", (x, y)))
    assert Part.of("plain", TensorDataset(x, y)).classes == 2


class Rows(Dataset):
    def __init__(self, row: object) -> None:
        self.row = row

    def __len__(self) -> int:
        return 3

    def __getitem__(self, row: int) -> object:
        return self.row


@pytest.mark.parametrize("label", [1, True, np.int32(1), torch.tensor(1, dtype=torch.uint8)])
def test_integer_labels_of_a_dataset_are_int64(label: object) -> None:
    _, labels = Part.of("rows", Rows((torch.zeros(2), label)), classes=2).rows([0, 1])
    assert labels.dtype == torch.int64
    assert labels.tolist() == [1, 1]


@pytest.mark.parametrize("label", [1.0, torch.tensor([1]), torch.tensor([0, 1])])
def test_other_labels_of_a_dataset_are_refused(label: object) -> None:
    with pytest.raises(ValueError, match=r"task 'rows': labels must be integers \(N,\), got torch"):
        Part.of("rows", Rows((torch.zeros(2), label)), classes=2).rows([0, 1])


@pytest.mark.parametrize(
    ("row", "kinds"),
    [
        ((torch.zeros(2), 1, 0.5), "(Tensor, int, float)"),
        (({"pixels": torch.zeros(2)}, 1), "(dict, int)"),
        ((torch.zeros(2), "cat"), "(Tensor, str)"),
        ({"x": torch.zeros(2), "y": 1}, "(dict)"),
        (torch.zeros(2), "(Tensor)"),
    ],
)
def test_rows_of_a_dataset_are_an_input_and_a_label(row: object, kinds: str) -> None:
    with pytest.raises(TypeError, match=f"must be .input, label., an array and a number; got {re.escape(kinds)}"):
        Part.of("rows", Rows(row), classes=2).rows([0, 1])


def test_three_tensors_are_no_task() -> None:
    x, y = torch.zeros(4, 2), torch.arange(4) % 2
    with pytest.raises(TypeError, match=r"two tensors; got \(Tensor, Tensor, Tensor\)"):
        Part.of("three", TensorDataset(x, y, y))
