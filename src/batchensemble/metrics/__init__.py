"""Metrics as pure functions: tensors in, numbers out.

One convention throughout: probabilities `(rows, classes)` and integer labels `(rows,)`; everything is
computed in float64; one number comes back as a Python float, several (per row, bin, member, task, step) as a
float64 tensor. Wrong shapes, labels out of range, NaN and rows that do not sum to 1 raise. Predictions with
positions, `(rows, positions, classes)`, are flattened into rows by the caller.
"""

from batchensemble.metrics.calibration import (
    Reliability,
    adaptive_ece,
    ece,
    fit_temperature,
    reliability,
    temperature_scaled_nll,
)
from batchensemble.metrics.classification import accuracy, brier, nll, nll_from_log_probs
from batchensemble.metrics.diversity import (
    base_disagreement,
    base_kl,
    cosine_similarity,
    disagreement,
    disagreement_over_error,
    member_accuracy,
    over_member_error,
    pairwise_kl,
    pairwise_kl_over_error,
)
from batchensemble.metrics.lifelong import (
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    seen_accuracy,
)
from batchensemble.metrics.regret import (
    cumulative_regret,
    mean_rank,
    paired_test,
    relative_regret,
    standard_error,
)
from batchensemble.metrics.shift import aupr, auroc, entropy, fpr95

__all__ = [
    "Reliability",
    "accuracy",
    "adaptive_ece",
    "aupr",
    "auroc",
    "average_accuracy",
    "backward_transfer",
    "base_disagreement",
    "base_kl",
    "brier",
    "cosine_similarity",
    "cumulative_regret",
    "disagreement",
    "disagreement_over_error",
    "ece",
    "entropy",
    "fit_temperature",
    "forgetting",
    "forward_transfer",
    "fpr95",
    "mean_rank",
    "member_accuracy",
    "nll",
    "nll_from_log_probs",
    "over_member_error",
    "paired_test",
    "pairwise_kl",
    "pairwise_kl_over_error",
    "relative_regret",
    "reliability",
    "seen_accuracy",
    "standard_error",
    "temperature_scaled_nll",
]


def __dir__() -> list[str]:
    return __all__
