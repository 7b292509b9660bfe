"""Accuracy matrices made by hand, where every answer can be read off."""

import pytest
import torch

from batchensemble.metrics import (
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    seen_accuracy,
)

NAN = torch.nan
MATRIX = torch.tensor([[0.8, 0.3, 0.1], [0.9, 0.7, 0.4], [0.5, 0.6, 1.0]], dtype=torch.float64)
LOWER = torch.tensor([[0.8, NAN, NAN], [0.9, 0.7, NAN], [0.5, 0.6, 1.0]], dtype=torch.float64)


@pytest.mark.parametrize("matrix", [MATRIX, LOWER], ids=["full", "lower triangle"])
def test_what_is_known_after_the_last_task(matrix) -> None:
    assert average_accuracy(matrix) == pytest.approx((0.5 + 0.6 + 1.0) / 3)
    assert seen_accuracy(matrix).tolist() == pytest.approx([0.8, (0.9 + 0.7) / 2, (0.5 + 0.6 + 1.0) / 3])
    assert forgetting(matrix) == pytest.approx(((0.8 - 0.5) + (0.7 - 0.6)) / 2)
    assert forgetting(matrix, from_best=True) == pytest.approx(((0.9 - 0.5) + (0.7 - 0.6)) / 2)
    assert backward_transfer(matrix) == pytest.approx(-0.2)


def test_forward_transfer() -> None:
    baseline = torch.tensor([0.2, 0.25, 0.3], dtype=torch.float64)
    assert forward_transfer(MATRIX, baseline) == pytest.approx(((0.3 - 0.25) + (0.4 - 0.3)) / 2)
    with pytest.raises(ValueError, match="accuracies on the task to come must be finite"):
        forward_transfer(LOWER, baseline)
    with pytest.raises(ValueError, match="baseline for each of 3 tasks, got 2"):
        forward_transfer(MATRIX, baseline[:2])


def test_later_tasks_can_help() -> None:
    matrix = torch.tensor([[0.5, NAN], [0.75, 1.0]])
    assert forgetting(matrix) == forgetting(matrix, from_best=True) == -0.25
    assert backward_transfer(matrix) == 0.25


def test_percent_is_as_good_as_shares() -> None:
    assert forgetting(100 * MATRIX) == pytest.approx(20)
    assert forgetting((100 * MATRIX).round().int()) == pytest.approx(20)


def test_one_task_has_nothing_to_forget() -> None:
    one = torch.tensor([[0.9]], dtype=torch.float64)
    assert average_accuracy(one) == seen_accuracy(one).item() == 0.9
    assert forgetting(one) == forgetting(one, from_best=True) == 0
    assert forward_transfer(one, torch.tensor([0.1])) == 0
    assert str(backward_transfer(one)) == "0.0"


@pytest.mark.parametrize("metric", [average_accuracy, seen_accuracy, forgetting, backward_transfer])
def test_bad_matrices(metric) -> None:
    for bad in (torch.zeros(2, 3), torch.zeros(3), torch.zeros(0, 0), torch.zeros(2, 2, 2)):
        with pytest.raises(ValueError, match=r"shape \(tasks, tasks\), got"):
            metric(bad)
    with pytest.raises(ValueError, match="accuracies on tasks already learned must be finite"):
        metric(MATRIX.T.where(MATRIX.T != 0.3, NAN))
