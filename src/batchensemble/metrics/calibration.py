"""Calibration, whether answers given with 80 % are right 80 % of the time: reliability, ECE, temperature scaling."""

import math
import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from batchensemble.metrics.checks import checked_device, checked_labels, checked_log_probs, checked_probs
from batchensemble.metrics.classification import nll_from_log_probs

BINS = 15
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0
FLAT = 1e-12  # a slope of the NLL
_WHY_NO_FURTHER = {
    MIN_TEMPERATURE: "every label is the most probable class, so no answer is too sure",
    MAX_TEMPERATURE: "the answers know less than nothing about these labels, at any confidence",
}


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram in numbers, one entry per bin of confidence.

    Attributes:
        edges: the bins' bounds `(bins + 1,)`; bin b holds confidences in `(edges[b], edges[b + 1]]`.
        confidence: mean probability of the chosen class in each bin `(bins,)`; 0 where the bin is empty.
        accuracy: share of rows that were right in each bin `(bins,)`; 0 where the bin is empty.
        count: rows in each bin `(bins,)`.
    """

    edges: Tensor
    confidence: Tensor
    accuracy: Tensor
    count: Tensor

    @property
    def error(self) -> float:
        """Expected calibration error, `sum_b count_b / N |accuracy_b - confidence_b|`."""
        gaps = (self.accuracy - self.confidence).abs()
        return ((self.count * gaps).sum() / self.count.sum()).item()


def reliability(
    probs: Tensor, labels: Tensor, bins: int = BINS, binning: Literal["width", "mass"] = "width"
) -> Reliability:
    """Confidence and accuracy by bin of confidence, where confidence is the largest probability.

    Bins are closed on the right: a confidence on an edge belongs to the bin below it, and 0 to the first bin.

    Args:
        probs: `(rows, classes)`.
        labels: `(rows,)`.
        bins: number of bins.
        binning: `"width"`: bins of equal width; `"mass"`: bins of equally many rows, except that rows of
            equal confidence stay together, so that the order of the rows never matters.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4]])
        >>> diagram = reliability(probs, torch.tensor([0, 0, 1]), bins=4)
        >>> diagram.count.tolist(), diagram.accuracy.tolist()
        ([0, 0, 2, 1], [0.0, 0.0, 0.5, 1.0])
    """
    if bins < 1:
        raise ValueError(f"expected at least one bin, got {bins}")
    if binning not in ("width", "mass"):
        raise ValueError(f'binning must be "width" or "mass", got {binning!r}')
    checked = checked_probs(probs)
    confidence, choice = checked.max(-1)
    right = (choice == checked_labels(labels, checked)).double()
    inner = _equal_width(bins, probs) if binning == "width" else _equal_mass(confidence, bins)
    where = torch.bucketize(confidence, inner)
    count = _sum_by_bin(torch.ones_like(confidence), where, bins)
    at_least_one = count.clamp(min=1)
    return Reliability(
        edges=torch.cat([inner.new_zeros(1), inner, inner.new_ones(1)]),
        confidence=_sum_by_bin(confidence, where, bins) / at_least_one,
        accuracy=_sum_by_bin(right, where, bins) / at_least_one,
        count=count.long(),
    )


def ece(probs: Tensor, labels: Tensor, bins: int = BINS) -> float:
    """Expected calibration error over bins of equal width, as a share (the paper prints percent).

    Shape:
        probs `(rows, classes)`, labels `(rows,)`.

    Examples:
        >>> round(ece(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1])), 4)
        0.45
    """
    return reliability(probs, labels, bins, "width").error


def adaptive_ece(probs: Tensor, labels: Tensor, bins: int = BINS) -> float:
    """Expected calibration error over bins of equally many rows, so that no bin is decided by a handful.

    Shape:
        probs `(rows, classes)`, labels `(rows,)`.

    Examples:
        >>> round(adaptive_ece(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1]), bins=1), 4)
        0.35
    """
    return reliability(probs, labels, bins, "mass").error


def fit_temperature(log_probs: Tensor, labels: Tensor) -> float:
    """The temperature T in [0.01, 100] that minimises the NLL of `softmax(log_probs / T)`.

    The NLL is convex in `1 / T`, so Newton's steps, kept inside a bracket around the minimum, find it. Where
    the NLL is flat (every class equally likely) T stays 1. Where it falls up to a bound (every label is the most
    probable class, or the answers know less than nothing) T is that bound, and a warning says why. Rows whose label has
    probability zero, and so an infinite NLL at every T, do not count.

    Shape:
        log_probs `(rows, classes)`, labels `(rows,)`.

    Examples:
        >>> log_probs = torch.tensor([[0.99, 0.01]] * 4).log()  # says 99 %, is right 75 % of the time
        >>> temperature = fit_temperature(log_probs, torch.tensor([0, 0, 0, 1]))
        >>> (log_probs[0] / temperature).softmax(-1)
        tensor([0.7500, 0.2500])
    """
    temperature = _fitted(log_probs, labels)
    if temperature in _WHY_NO_FURTHER:
        warnings.warn(
            f"{_WHY_NO_FURTHER[temperature]}: the temperature stops at its bound {temperature}. "
            "Fit it on more rows, unseen in training.",
            stacklevel=2,
        )
    return temperature


def temperature_scaled_nll(log_probs: Tensor, labels: Tensor, generator: torch.Generator | None = None) -> float:
    """NLL after temperature scaling, with T fitted on a random half of the rows, used on the other, and vice versa.

    Comparing ensembles without it can mislead, since one number per method may repair most of the difference
    (Ashukha et al., 2020). The two measurements are averaged over all rows. Scale the log of the mean
    probability, the ensemble's answer, not the members' logits.

    Shape:
        log_probs `(rows, classes)`, labels `(rows,)`, at least two rows.

    Examples:
        >>> confident = torch.tensor([[0.99, 0.01]] * 40).log()
        >>> labels = torch.tensor([0, 0, 0, 1] * 10)
        >>> round(nll_from_log_probs(confident, labels), 2)
        1.16
        >>> 0.5 < temperature_scaled_nll(confident, labels, torch.Generator().manual_seed(0)) < 0.7
        True
    """
    log_probs = checked_log_probs(log_probs)
    labels = checked_labels(labels, log_probs)
    rows = len(labels)
    if rows < 2:
        raise ValueError("temperature scaling needs two rows at least: one to fit on, one to measure")
    order = torch.randperm(rows, generator=generator, device=checked_device(generator)).to(log_probs.device)
    first, second = order.tensor_split(2)
    total = 0.0
    for fitted, measured in ((first, second), (second, first)):
        temperature = _fitted(log_probs[fitted], labels[fitted])
        scaled = (log_probs[measured] / temperature).log_softmax(-1)
        total += len(measured) * nll_from_log_probs(scaled, labels[measured])
    return total / rows


def _equal_width(bins: int, probs: Tensor) -> Tensor:
    edges = torch.arange(1, bins, device=probs.device, dtype=torch.float64) / bins
    # Rounded as the probabilities were, so that a float32 0.2 lies on the edge 0.2 and not above it.
    return edges.to(probs.dtype).double()


def _equal_mass(confidence: Tensor, bins: int) -> Tensor:
    last = torch.arange(1, bins, device=confidence.device) * len(confidence) // bins - 1
    return confidence.sort().values[last.clamp(min=0)]


def _sum_by_bin(values: Tensor, where: Tensor, bins: int) -> Tensor:
    return values.new_zeros(bins).scatter_add(0, where, values)


def _fitted(log_probs: Tensor, labels: Tensor) -> float:
    """What `fit_temperature` returns."""
    log_probs = checked_log_probs(log_probs)
    labels = checked_labels(labels, log_probs)
    possible = log_probs.gather(1, labels[:, None])[:, 0].isfinite()
    log_probs, labels = log_probs[possible], labels[possible]
    if not len(labels):
        return 1.0
    low, high, inverse = 1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE, 1.0
    at_low, at_high = (_derivatives(log_probs, labels, end)[0] for end in (low, high))
    if at_low > FLAT:
        return MAX_TEMPERATURE
    if at_low < -FLAT and at_high < FLAT:
        return MIN_TEMPERATURE
    for _ in range(100):
        slope, curvature = _derivatives(log_probs, labels, inverse)
        if abs(slope) < FLAT:
            break
        low, high = (inverse, high) if slope < 0 else (low, inverse)
        newton = inverse - slope / curvature if curvature > 0 else math.inf
        previous, inverse = inverse, (newton if low < newton < high else math.sqrt(low * high))
        if abs(inverse - previous) <= 1e-10 * previous:
            break
    return 1 / inverse


def _derivatives(log_probs: Tensor, labels: Tensor, inverse: float) -> tuple[float, float]:
    """First and second derivative of the NLL by `1 / T`: E[log p] - log p(y), and the variance of log p."""
    scaled = (log_probs * inverse).softmax(-1)
    log_probs = log_probs.masked_fill(log_probs.isneginf(), 0)  # p log p is 0 for a probability of zero
    mean = (scaled * log_probs).sum(-1, keepdim=True)
    of_label = torch.take_along_dim(log_probs, labels[:, None], dim=-1)
    variance = (scaled * (log_probs - mean).square()).sum(-1)
    return (mean - of_label).mean().item(), variance.mean().item()
