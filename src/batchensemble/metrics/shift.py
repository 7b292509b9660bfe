"""How well a score of uncertainty tells unknown data from known: entropy, AUROC, average precision, FPR95.

Scores are higher the less familiar a row looks (entropy, 1 - max p), and the unknown rows are the positive
class throughout. Scores that are higher on known rows are negated by the caller.
"""

import torch
from torch import Tensor

from batchensemble.metrics.checks import checked_probs, checked_values


def entropy(probs: Tensor) -> Tensor:
    """Entropy of every row in nats, `-sum_c p(c) log p(c)`.

    Shape:
        `(rows, classes) -> (rows,)`.

    Examples:
        >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
        tensor([0.6931, 0.0000], dtype=torch.float64)
    """
    entropies: Tensor = torch.special.entr(checked_probs(probs)).sum(-1)
    return entropies


def auroc(known: Tensor, unknown: Tensor) -> float:
    """Probability that an unknown row scores higher than a known one; a tie counts one half.

    Shape:
        scores `(rows,)` each, of any two lengths.

    Examples:
        >>> auroc(known=torch.tensor([0.1, 0.2, 0.3]), unknown=torch.tensor([0.3, 0.9]))
        0.9166666666666666
    """
    detected, false_alarms = _curve(known, unknown)
    # The trapezium under the curve is what gives a tie its half.
    return torch.trapezoid(detected / len(unknown), false_alarms / len(known)).item()


def aupr(known: Tensor, unknown: Tensor) -> float:
    """Average precision, `sum_k (recall_k - recall_(k-1)) precision_k` over falling thresholds.

    Shape:
        scores `(rows,)` each, of any two lengths.

    Examples:
        >>> aupr(known=torch.tensor([0.1, 0.2, 0.5]), unknown=torch.tensor([0.4, 0.9]))
        0.8333333333333333
    """
    detected, false_alarms = _curve(known, unknown)
    precision = detected[1:] / (detected + false_alarms)[1:]
    return (precision * detected.diff()).sum().item() / len(unknown)


def fpr95(known: Tensor, unknown: Tensor) -> float:
    """Share of known rows flagged by the strictest threshold that flags at least 95 % of the unknown rows.

    The literature also has it with the known rows as the positive class: that is `fpr95(-unknown, -known)`.

    Shape:
        scores `(rows,)` each, of any two lengths.

    Examples:
        >>> fpr95(known=torch.tensor([0.1, 0.2, 0.3, 0.5]), unknown=torch.tensor([0.4, 0.9]))
        0.25
    """
    detected, false_alarms = _curve(known, unknown)
    enough = detected / len(unknown) >= 0.95
    return false_alarms[enough][0].item() / len(known)


def _curve(known: Tensor, unknown: Tensor) -> tuple[Tensor, Tensor]:
    """How many unknown and known rows reach each distinct score, from none to all; both `(scores + 1,)`."""
    known = checked_values(known, "scores of known rows", ("rows",))
    unknown = checked_values(unknown, "scores of unknown rows", ("rows",))
    scores = torch.cat([unknown, known])
    is_unknown = torch.cat([torch.ones_like(unknown), torch.zeros_like(known)])
    _, level, size = torch.unique(-scores, return_inverse=True, return_counts=True)
    detected = torch.zeros_like(size, dtype=scores.dtype).scatter_add(0, level, is_unknown).cumsum(0)
    false_alarms = size.cumsum(0) - detected
    start = scores.new_zeros(1)
    return torch.cat([start, detected]), torch.cat([start, false_alarms])
