"""What every metric requires of its inputs, in one place: wrong shapes, ranges and NaNs never become a number."""

from collections.abc import Sequence

import torch
from torch import Tensor

# Generous enough for probabilities that were stored in half precision, far too small for logits to pass.
SUM_TOLERANCE = 2e-2


def checked_probs(probs: Tensor, axes: Sequence[str] = ("rows", "classes")) -> Tensor:
    """Probabilities in float64: the named axes, the last one the classes, every distribution summing to 1."""
    probs = checked_values(_checked_floats(probs, "probabilities"), "probabilities", axes)
    if (probs < 0).any():
        raise ValueError(f"probabilities must not be negative, but the smallest is {probs.min().item():.4g}")
    _check_sums(probs, "probabilities")
    return probs


def checked_log_probs(log_probs: Tensor) -> Tensor:
    """Log probabilities in float64; minus infinity, the log of zero, is allowed."""
    log_probs = _checked_shape(log_probs, "log probabilities", ("rows", "classes"))
    if log_probs.isnan().any():
        raise ValueError("log probabilities hold NaN")
    _check_sums(log_probs.exp(), "log probabilities (of logits: log_softmax), exponentiated,")
    return log_probs


def checked_labels(labels: Tensor, probs: Tensor) -> Tensor:
    """Labels `(rows,)` as int64 on the device of `probs`, each a class that `probs` knows."""
    rows, classes = probs.shape[-2:]
    labels = _checked_tensor(labels, "labels")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise TypeError(f"labels must be integers, not {labels.dtype}")
    if labels.shape != (rows,):
        raise ValueError(f"expected one label for each of the {rows} rows, got shape {tuple(labels.shape)}")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise ValueError(f"labels must lie in [0, {classes}), but range from {low} to {high}")
    return labels.to(probs.device, torch.int64)


def checked_values(values: Tensor, name: str, axes: Sequence[str]) -> Tensor:
    """Finite numbers in float64 with the named axes, none of them empty."""
    values = _checked_shape(values, name, axes)
    if not values.isfinite().all():
        raise ValueError(f"{name} must be finite, but hold NaN or infinity")
    return values


def checked_device(generator: torch.Generator | None) -> torch.device | None:
    """The device of a source of randomness; `None` without one."""
    if generator is None:
        return None
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            f"expected a torch.Generator, such as torch.Generator().manual_seed(0), got {type(generator).__name__}"
        )
    return generator.device


def _checked_tensor(values: Tensor, name: str) -> Tensor:
    if not isinstance(values, Tensor):
        raise TypeError(f"expected {name} as a torch tensor, got {type(values).__name__}")
    return values


def _checked_floats(values: Tensor, name: str) -> Tensor:
    if not _checked_tensor(values, name).is_floating_point():
        raise TypeError(f"{name} must be floating-point numbers, not {values.dtype}")
    return values


def _checked_shape(values: Tensor, name: str, axes: Sequence[str]) -> Tensor:
    values = _checked_tensor(values, name)
    expected = f"({', '.join(axes)})"
    if values.ndim != len(axes):
        both = ": of two classes, give both, torch.stack([1 - p, p], -1)"
        hint = both if axes[-1] == "classes" and values.ndim == len(axes) - 1 else ""
        raise ValueError(f"expected {name} of shape {expected}, got {tuple(values.shape)}{hint}")
    if values.numel() == 0:
        raise ValueError(f"expected {name} with something in them, got an empty {tuple(values.shape)}")
    return values.detach().to(torch.float64)


def _check_sums(probs: Tensor, name: str) -> None:
    sums = probs.sum(-1)
    worst = sums.flatten()[(sums - 1).abs().argmax()].item()
    if not abs(worst - 1) <= SUM_TOLERANCE:
        raise ValueError(f"{name} must sum to 1 over the last axis, but one row sums to {worst:.4g}")
