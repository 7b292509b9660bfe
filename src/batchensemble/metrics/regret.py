"""What a bandit's choices cost, and how to compare algorithms: regret, ranks, standard errors, a paired test."""

import math

import torch
from torch import Tensor

from batchensemble.metrics.checks import checked_device, checked_values

EXACT_UP_TO = 16
BLOCK = 10_000


def cumulative_regret(optimal: Tensor, obtained: Tensor) -> Tensor:
    """Reward missed so far, `sum_(t <= T) (optimal_t - obtained_t)`; the last entry is the regret.

    Shape:
        `(..., steps)` each, and so is the result.

    Examples:
        >>> cumulative_regret(torch.tensor([5.0, 5.0, 0.0]), torch.tensor([5.0, 0.0, 0.0])).tolist()
        [0.0, 5.0, 5.0]
    """
    if optimal.shape != obtained.shape or not optimal.ndim:
        shapes = f"{tuple(optimal.shape)} and {tuple(obtained.shape)}"
        raise ValueError(f"optimal and obtained rewards must have one shape (..., steps), got {shapes}")
    axes = ("...",) * (optimal.ndim - 1) + ("steps",)
    optimal = checked_values(optimal, "optimal rewards", axes)
    return (optimal - checked_values(obtained, "obtained rewards", axes)).cumsum(-1)


def relative_regret(regret: Tensor, uniform: Tensor) -> Tensor:
    """Regret in percent of what choosing at random costs on the same data, `100 regret / uniform`.

    Shape:
        `(...)` each, one value per trial, and so is the result.

    Examples:
        >>> relative_regret(torch.tensor([5.0, 20.0]), uniform=torch.tensor([50.0, 40.0])).tolist()
        [10.0, 50.0]
    """
    if regret.shape != uniform.shape:
        shapes = f"{tuple(regret.shape)} and {tuple(uniform.shape)}"
        raise ValueError(f"regret and uniform must have one shape, the same trials, got {shapes}")
    axes = ("...",) * regret.ndim
    regret, uniform = checked_values(regret, "regret", axes), checked_values(uniform, "uniform regret", axes)
    if (uniform <= 0).any():
        raise ValueError(f"the uniform policy's regret must be positive, but one is {uniform.min().item():.4g}")
    return 100 * regret / uniform


def mean_rank(values: Tensor) -> Tensor:
    """Each method's rank, averaged over problems: 1 has the smallest value, equal ones share their mean rank.

    Shape:
        `(methods, problems) -> (methods,)`.

    Examples:
        >>> mean_rank(torch.tensor([[10.0, 7.0], [20.0, 7.0], [30.0, 9.0]])).tolist()
        [1.25, 1.75, 3.0]
    """
    values = checked_values(values, "values", ("methods", "problems"))
    smaller = (values[None] < values[:, None]).sum(1)
    equal = (values[None] == values[:, None]).sum(1)  # itself included
    return (smaller + (equal + 1) / 2).double().mean(-1)


def standard_error(values: Tensor) -> Tensor:
    """Standard error of the mean over trials, `std / sqrt(trials)` with the sample deviation.

    Shape:
        `(trials, ...) -> (...)`: one number for one value per trial, a curve for a curve per trial.

    Examples:
        >>> standard_error(torch.tensor([1.0, 2.0, 3.0, 4.0])).item()
        0.6454972243679028
    """
    values = checked_values(values, "values", ("trials",) + ("...",) * (values.ndim - 1))
    if len(values) < 2:
        raise ValueError("one trial has no spread: expected two trials at least")
    return values.std(0, correction=1) / math.sqrt(len(values))


def paired_test(
    first: Tensor, second: Tensor, resamples: int = 100_000, generator: torch.Generator | None = None
) -> float:
    """Two-sided p-value for "both algorithms do equally well on the same trials", by flipping signs.

    If neither is better, `first - second` is as likely as its negative in every trial: the p-value is the
    share of sign patterns whose mean difference is at least as large as the one seen. Up to 16 trials, all
    patterns are counted; beyond that, random ones and the one seen: `(1 + hits) / (1 + resamples)`.

    Args:
        first: one value per trial `(trials,)`.
        second: the other algorithm on the same trials, in the same order.
        resamples: random sign patterns beyond 16 trials.
        generator: source of the sign patterns.

    Examples:
        >>> first, second = torch.tensor([3.0, 4.0, 5.0, 6.0]), torch.tensor([2.0, 2.0, 4.0, 5.0])
        >>> paired_test(first, second)  # 2 of 16 patterns
        0.125
    """
    first = checked_values(first, "values of the first algorithm", ("trials",))
    second = checked_values(second, "values of the second algorithm", ("trials",))
    if first.shape != second.shape:
        raise ValueError(f"a paired test needs the same trials twice, got {len(first)} and {len(second)}")
    if resamples < 1:
        raise ValueError(f"expected at least one random sign pattern, got resamples={resamples}")
    differences = (first - second).cpu()
    if len(differences) <= EXACT_UP_TO:
        trials = torch.arange(len(differences), device="cpu")  # wherever torch puts tensors by default
        patterns = torch.arange(2 ** len(trials), device="cpu")[:, None] >> trials & 1
        return _hits(differences, patterns) / len(patterns)
    hits, device = 1, checked_device(generator)
    for start in range(0, resamples, BLOCK):
        size = (min(BLOCK, resamples - start), len(differences))
        hits += _hits(differences, torch.randint(2, size, generator=generator, device=device).cpu())
    return hits / (1 + resamples)


def _hits(differences: Tensor, patterns: Tensor) -> int:
    """How many sign patterns (bits) give a sum at least as far from zero as the differences themselves."""
    sums = (2 * patterns - 1).double() @ differences
    slack = 1e-12 * differences.abs().sum()  # equal sums stay equal when added in another order
    return int((sums.abs() >= differences.sum().abs() - slack).sum())
