"""The claim that one training gets to where another ends in fewer steps, or in less time."""

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.quantity import quantity
from batchensemble.lab.report.views.view import View

Labels = Mapping[str, str]
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The effort taken, and the values reached."""


def sooner(metric: str, this: Labels, than: Labels, claim: str, *, x: str = "steps", times: float = 1.0) -> View:
    """The claim that `this` gets down to the lowest value of `than` at least `times` as fast.

    Args:
        metric: a list of falling numbers, one per validation.
        this: labels of the one.
        than: labels of the other, whose lowest mean over seeds is the goal.
        claim: the claim in words.
        x: another list, of the effort taken: `steps`, `tokens` or `seconds`.
        times: the least ratio of speeds.

    Several seeds decide if every pair of them, one from each side, agrees with the means.

    Examples:
        >>> view = sooner("validation_loss", {"method": "BatchEnsemble"}, {"method": "Single"}, "It learns faster.")
        >>> view(Evidence("translation", "smoke", ())).verdict.value
        'not measured'
    """

    def view(evidence: Evidence) -> Check:
        seeds = [_curves(evidence, metric, x, labels) for labels in (this, than)]
        curve, rival = map(_mean_curve, seeds)
        if curve is None or rival is None:
            absent = ", ".join((this if curve is None else than).values())
            return Check(claim, Verdict.OPEN, f"No {quantity(metric).name} of {absent}.")
        goal = float(rival[1].min())
        took, rival_took = _first(*curve, goal), _first(*rival, goal)
        words = f"To the {goal:.3f} that {', '.join(than.values())} reaches after {rival_took:,.0f} {x}, it "
        speed = _speed(curve, rival)
        agree = len({_speed(*pair) >= times for pair in product(*seeds)} | {speed >= times}) == 1
        verdict = Verdict.of(speed >= times, within_noise=not agree, one_seed=min(map(len, seeds)) < 2)
        reached = "does not get" if math.isinf(took) else f"took {took:,.0f}: {speed:.2f} times as fast"
        return Check(claim, verdict, f"{words}{reached}.")

    return view


def _curves(evidence: Evidence, metric: str, x: str, labels: Labels) -> list[Curve]:
    """The curve of every seed."""
    return [
        (np.asarray(result.record.metrics[x], dtype=np.float64), np.asarray(values, dtype=np.float64))
        for result, values in evidence.with_metric(metric, **labels)
        if x in result.record.metrics
    ]


def _mean_curve(curves: Sequence[Curve]) -> Curve | None:
    """The mean over seeds, as far as all of them went."""
    if not curves:
        return None
    length = min(len(reached) for _, reached in curves)
    took, reached = (np.mean([side[:length] for side in sides], axis=0) for sides in zip(*curves, strict=True))
    return took, reached


def _speed(curve: Curve, rival: Curve) -> float:
    """How many times as fast a curve gets to the lowest value of its rival; 0 if it never does."""
    goal = float(rival[1].min())
    return _first(*rival, goal) / _first(*curve, goal)


def _first(took: NDArray[np.float64], reached: NDArray[np.float64], goal: float) -> float:
    """The effort taken to reach the goal; infinity if it was not reached."""
    there = np.flatnonzero(reached <= goal)
    return float(took[there[0]]) if len(there) else math.inf
