"""How good the answers of a classifier are: accuracy, negative log-likelihood, Brier score."""

import torch
from torch import Tensor

from batchensemble.metrics.checks import checked_labels, checked_log_probs, checked_probs


def accuracy(probs: Tensor, labels: Tensor) -> float:
    """Share of rows whose most probable class is the label; among equally probable classes the first is taken.

    Shape:
        probs `(rows, classes)`, labels `(rows,)`.

    Examples:
        >>> accuracy(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        0.5
    """
    probs = checked_probs(probs)
    return (probs.argmax(-1) == checked_labels(labels, probs)).double().mean().item()


def nll(probs: Tensor, labels: Tensor) -> float:
    """Negative log-likelihood in nats, `-mean_n log p_n(y_n)`.

    A label of probability zero makes it infinite, as the formula says. Where softmax may have underflowed,
    keep the logarithms and use `nll_from_log_probs`.

    Shape:
        probs `(rows, classes)`, labels `(rows,)`.

    Examples:
        >>> round(nll(torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([0, 1])), 4)
        0.4904
    """
    probs = checked_probs(probs)
    return -_of_label(probs, checked_labels(labels, probs)).log().mean().item()


def nll_from_log_probs(log_probs: Tensor, labels: Tensor) -> float:
    """`nll` of logarithms, such as an ensemble's answer in `eval()` with `combine="softmax"`.

    Shape:
        log_probs `(rows, classes)`, labels `(rows,)`.

    Examples:
        >>> round(nll_from_log_probs(torch.tensor([[0.5, 0.5], [0.25, 0.75]]).log(), torch.tensor([0, 1])), 4)
        0.4904
    """
    log_probs = checked_log_probs(log_probs)
    return -_of_label(log_probs, checked_labels(labels, log_probs)).mean().item()


def brier(probs: Tensor, labels: Tensor) -> float:
    """Brier score, `mean_n sum_c (p_n(c) - [c = y_n])^2`: 0 is perfect, 2 is certain of the wrong class.

    Ovadia et al. (2019) leave out the constant from the label's own square: theirs is `brier - 1`.

    Shape:
        probs `(rows, classes)`, labels `(rows,)`.

    Examples:
        >>> brier(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([0, 1]))
        0.25
    """
    probs = checked_probs(probs)
    of_label = _of_label(probs, checked_labels(labels, probs))
    others = probs.square().sum(-1) - of_label.square()
    return (others + (1 - of_label).square()).mean().item()


def _of_label(values: Tensor, labels: Tensor) -> Tensor:
    return torch.take_along_dim(values, labels[:, None], dim=-1).squeeze(-1)
