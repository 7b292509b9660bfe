"""Accuracy, likelihood and Brier score against torchmetrics and scikit-learn."""

import math

import pytest
import torch
from sklearn.metrics import brier_score_loss, log_loss
from torchmetrics.functional.classification import multiclass_accuracy

from batchensemble.metrics import accuracy, brier, nll, nll_from_log_probs


@pytest.fixture(params=[(200, 7), (1, 3), (50, 2)], ids=str)
def data(request) -> tuple[torch.Tensor, torch.Tensor]:
    rows, classes = request.param
    generator = torch.Generator().manual_seed(rows)
    probs = (3 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)).softmax(-1)
    return probs, torch.randint(classes, (rows,), generator=generator)


def test_accuracy(data) -> None:
    probs, labels = data
    expected = multiclass_accuracy(probs, labels, num_classes=probs.shape[1], average="micro")
    assert accuracy(probs, labels) == pytest.approx(expected.item())


def test_nll(data) -> None:
    probs, labels = data
    expected = log_loss(labels, probs, labels=range(probs.shape[1]))
    assert nll(probs, labels) == pytest.approx(expected, rel=1e-12)
    assert nll_from_log_probs(probs.log(), labels) == pytest.approx(expected, rel=1e-12)


def test_brier(data) -> None:
    probs, labels = data
    expected = brier_score_loss(labels, probs, labels=list(range(probs.shape[1])), scale_by_half=False)
    assert brier(probs, labels) == pytest.approx(expected, rel=1e-12)
    squares = (probs.square().sum(-1) - 2 * probs[torch.arange(len(labels)), labels]).mean().item()
    assert brier(probs, labels) - 1 == pytest.approx(squares)


def test_certain_and_right_and_certain_and_wrong() -> None:
    sure, right, wrong = torch.eye(3), torch.arange(3), torch.tensor([1, 2, 0])
    assert (accuracy(sure, right), nll(sure, right), brier(sure, right)) == (1, 0, 0)
    assert (accuracy(sure, wrong), nll(sure, wrong), brier(sure, wrong)) == (0, math.inf, 2)


def test_the_first_of_equal_classes_is_the_answer() -> None:
    assert accuracy(torch.tensor([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4]]), torch.tensor([0, 2])) == 0.5


def test_logarithms_survive_where_probabilities_underflow() -> None:
    log_probs = torch.tensor([[0.0, 200.0]]).log_softmax(-1)
    assert nll(log_probs.exp(), torch.tensor([0])) == math.inf
    assert nll_from_log_probs(log_probs, torch.tensor([0])) == 200
    assert nll_from_log_probs(torch.tensor([[0.0, -torch.inf]]), torch.tensor([0])) == 0
