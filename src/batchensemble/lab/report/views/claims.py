"""Claims that numbers can settle: this is higher, lower, about equal, so many times as much."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.evidence import Evidence, Summary
from batchensemble.lab.report.quantity import Quantity, quantity
from batchensemble.lab.report.views.view import View

Labels = Mapping[str, str]


@dataclass(frozen=True)
class _Pair:
    """Two summaries of one quantity, and the words for them."""

    quantity: Quantity
    this: Summary
    other: Summary
    words: str

    @property
    def difference(self) -> float:
        return self.this.mean - self.other.mean

    @property
    def noise_is_known(self) -> bool:
        """Whether both sides have several seeds."""
        return min(self.this.count, self.other.count) > 1

    @property
    def within_noise(self) -> bool:
        """Whether the difference is known to be smaller than twice its standard error."""
        error = math.sqrt(sum((side.spread or 0.0) ** 2 / side.count for side in (self.this, self.other)))
        return self.noise_is_known and abs(self.difference) < 2 * error

    def decide(self, holds: bool) -> Verdict:
        """The verdict on a difference, which its noise may forbid."""
        return Verdict.of(holds, within_noise=self.within_noise)


def higher(metric: str | Quantity, this: Labels, than: Labels, claim: str, *, by: float = 0.0) -> View:
    """The claim that `this` has more of a metric than `than`, by at least `by` (in the metric's own unit).

    Examples:
        >>> view = higher("accuracy", {"method": "BatchEnsemble"}, {"method": "Single"}, "It beats one network.")
        >>> view(Evidence("cifar", "smoke", ())).verdict.value
        'not measured'
    """
    return _compare(metric, this, than, claim, lambda pair: pair.decide(pair.difference > by))


def lower(metric: str | Quantity, this: Labels, than: Labels, claim: str, *, by: float = 0.0) -> View:
    """The claim that `this` has less of a metric than `than`, by at least `by`."""
    return _compare(metric, this, than, claim, lambda pair: pair.decide(pair.difference < -by))


def on_a_par(metric: str | Quantity, this: Labels, with_: Labels, claim: str, *, within: float) -> View:
    """The claim that `this` and `with_` differ by at most `within` (in the metric's own unit)."""
    return _compare(metric, this, with_, claim, lambda pair: Verdict.of(abs(pair.difference) <= within))


def ratio(
    metric: str | Quantity,
    this: Labels,
    over: Labels,
    claim: str,
    *,
    at_least: float = 0.0,
    at_most: float = float("inf"),
) -> View:
    """The claim that `this` has between `at_least` and `at_most` times as much of a metric as `over`."""

    def judge(pair: _Pair) -> Verdict:
        return Verdict.of(bool(pair.other.mean) and at_least <= pair.this.mean / pair.other.mean <= at_most)

    return _compare(metric, this, over, claim, judge, as_ratio=True)


def _compare(
    metric: str | Quantity,
    this: Labels,
    other: Labels,
    claim: str,
    judge: Callable[["_Pair"], Verdict],
    *,
    as_ratio: bool = False,
) -> View:
    shown = quantity(metric)

    def view(evidence: Evidence) -> Check:
        ours = evidence.summary(shown.metric, **this)
        theirs = evidence.summary(shown.metric, **other)
        if ours is None or theirs is None:
            absent = _name(this) if ours is None else _name(other)
            return Check(claim, Verdict.OPEN, f"No {shown.name} of {absent}.")
        words = f"{_said(shown, this, ours)}; {_said(shown, other, theirs)}"
        pair = _Pair(shown, ours, theirs, words)
        return Check(claim, judge(pair), _conclusion(pair, as_ratio))

    return view


def _conclusion(pair: _Pair, as_ratio: bool) -> str:
    if as_ratio and pair.other.mean:
        return f"{pair.words}; {pair.this.mean / pair.other.mean:.2f} times as much."
    sign = "+" if pair.difference >= 0 else "-"
    words = f"{pair.words}; {sign}{pair.quantity.text(abs(pair.difference))}{_unit(pair.quantity, 'points')}"
    if not pair.noise_is_known:
        return f"{words} with one seed, so the noise is unknown."
    return f"{words}, which is within the noise of the seeds." if pair.within_noise else f"{words}."


def _said(shown: Quantity, labels: Labels, summary: Summary) -> str:
    return f"{_name(labels)}: {shown.summary(summary)}{_unit(shown)} (n = {summary.count})"


def _unit(shown: Quantity, of_percent: str = "%") -> str:
    unit = of_percent if shown.unit == "%" else shown.unit
    return f" {unit}" if unit else ""


def _name(labels: Labels) -> str:
    return ", ".join(labels.values())
