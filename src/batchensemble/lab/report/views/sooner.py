"""The claim that one training gets to where another one ends in fewer steps, or in less time."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.quantity import quantity
from batchensemble.lab.report.views.view import View

Labels = Mapping[str, str]


def sooner(metric: str, this: Labels, than: Labels, claim: str, *, x: str = "steps", times: float = 1.0) -> View:
    """The claim that `this` gets down to the lowest value of `than` at least `times` as fast.

    Args:
        metric: a list of numbers that fall, one per validation.
        this: labels of the one.
        than: labels of the other, whose lowest mean over seeds is the goal.
        claim: in words.
        x: another list, of what it took: `steps`, `tokens` or `seconds`.
        times: as fast, at least.

    Examples:
        >>> view = sooner("validation_loss", {"method": "BatchEnsemble"}, {"method": "Single"}, "It learns faster.")
        >>> view(Evidence("translation", "smoke", ())).verdict.value
        'not measured'
    """

    def view(evidence: Evidence) -> Check:
        ours, theirs = (_mean_curve(evidence, metric, x, labels) for labels in (this, than))
        if ours is None or theirs is None:
            absent = ", ".join((this if ours is None else than).values())
            return Check(claim, Verdict.OPEN, f"No {quantity(metric).name} of {absent}.")
        goal = float(theirs[1].min())
        took, other = _first(*ours, goal), _first(*theirs, goal)
        words = f"To the {goal:.3f} that {', '.join(than.values())} reaches after {other:,.0f} {x}, it "
        speed = other / took  # 0 where it did not get there
        verdict = Verdict.of(speed >= times, one_seed=_fewest_seeds(evidence, metric, this, than) < 2)
        reached = "does not get" if math.isinf(took) else f"took {took:,.0f}: {speed:.2f} times as fast"
        return Check(claim, verdict, f"{words}{reached}.")

    return view


def _fewest_seeds(evidence: Evidence, metric: str, *sides: Labels) -> int:
    return min(sum(1 for _ in evidence.with_metric(metric, **labels)) for labels in sides)


def _mean_curve(
    evidence: Evidence, metric: str, x: str, labels: Labels
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """What it took and what was reached, each the mean over seeds, as far as all of them went."""
    found = [
        (result.record.metrics[x], values)
        for result, values in evidence.with_metric(metric, **labels)
        if x in result.record.metrics
    ]
    if not found:
        return None
    length = min(len(values) for _, values in found)
    return _mean([took for took, _ in found], length), _mean([values for _, values in found], length)


def _mean(rows: Sequence[Sequence[float]], length: int) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = np.asarray([row[:length] for row in rows], dtype=np.float64).mean(axis=0)
    return mean


def _first(took: NDArray[np.float64], reached: NDArray[np.float64], goal: float) -> float:
    """What it took to the goal; infinity where it was not reached."""
    there = np.flatnonzero(reached <= goal)
    return float(took[there[0]]) if len(there) else math.inf
