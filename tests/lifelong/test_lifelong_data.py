"""Batches mix the rows of several tasks, and every label is checked before a head sees it."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from batchensemble.lifelong.data import Part, Pool, batches, steps_of


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
