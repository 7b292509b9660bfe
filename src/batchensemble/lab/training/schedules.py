"""Learning-rate schedules: the factor applied to the base rate at each point of a training."""

import math
from collections.abc import Callable

from batchensemble.optim import half_cosine

Schedule = Callable[[float, float], float]
"""Maps (epochs completed, total epochs) to the factor."""


def drops(*at: float, warmup: float = 0.0) -> Schedule:
    """Multiply by 0.1 at each fraction of the training in `at`, after a linear warm-up over `warmup` epochs.

    Examples:
        >>> schedule = drops(0.5, 0.75)
        >>> [round(schedule(epoch, 100), 3) for epoch in (0, 49.9, 50, 75)]
        [1.0, 1.0, 0.1, 0.01]
    """

    def schedule(done: float, epochs: float) -> float:
        start = min(1.0, done / warmup) if warmup else 1.0
        return start * 0.1 ** sum(done >= share * epochs for share in at)

    return schedule


def cosine(done: float, epochs: float) -> float:
    """Half a cosine wave from one to zero.

    Examples:
        >>> [round(cosine(epoch, 100), 3) for epoch in (0, 50, 100)]
        [1.0, 0.5, 0.0]
    """
    return half_cosine(min(1.0, done / epochs))


def inverse_square_root(warmup: int, steps: int) -> Schedule:
    """The Transformer's schedule: rises linearly to one, then falls as one over the square root of the step.

    Args:
        warmup: steps until the peak.
        steps: steps in an epoch.

    Examples:
        >>> schedule = inverse_square_root(warmup=100, steps=50)
        >>> [round(schedule(done, 20), 2) for done in (0, 1, 1.98, 7.98)]
        [0.01, 0.51, 1.0, 0.5]
    """

    def schedule(done: float, epochs: float) -> float:
        step = round(done * steps) + 1
        return min(step / warmup, math.sqrt(warmup / step))

    return schedule


SCHEDULES: dict[str, Schedule] = {
    "paper": drops(0.5, 0.75),
    "released": drops(0.4, 0.8, 0.9, warmup=1.0),
    "cosine": cosine,
}
"""As in the paper's text, as in the authors' released code, and one that suits short trainings."""
