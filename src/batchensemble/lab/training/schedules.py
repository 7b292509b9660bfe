"""Learning-rate schedules: the factor of the base rate at a moment of the training."""

import math
from collections.abc import Callable

Schedule = Callable[[float, float], float]
"""(epochs done, epochs in all) to the factor."""


def drops(*at: float, warmup: float = 0.0) -> Schedule:
    """Times a tenth at every share of the training in `at`, after a linear start over `warmup` epochs.

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
    """Half a cosine from one to zero.

    Examples:
        >>> [round(cosine(epoch, 100), 3) for epoch in (0, 50, 100)]
        [1.0, 0.5, 0.0]
    """
    return 0.5 * (1 + math.cos(math.pi * min(1.0, done / epochs)))


def inverse_square_root(warmup: int, steps: int) -> Schedule:
    """The Transformer's: up to one in a straight line, then down with the square root of the steps taken.

    Args:
        warmup: steps to the top.
        steps: of an epoch.

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
"""The paper's text, the authors' released code, and the one that short trainings like."""
