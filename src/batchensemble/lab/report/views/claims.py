"""Claims that numbers can settle: higher, lower, about equal, no better, no worse, so many times as much."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from batchensemble.lab.report.check import Check, Span, Verdict
from batchensemble.lab.report.evidence import Evidence, Summary
from batchensemble.lab.report.quantity import Quantity, quantity
from batchensemble.lab.report.views.view import View

Labels = Mapping[str, str]


@dataclass(frozen=True)
class _Claim:
    """A claim about two kinds of runs: the span in which their difference, or their ratio, lies.

    Args:
        words: the paper's words.
        holds: the span in which the claim holds.
        as_ratio: whether the span is one of ratios.
        counted: whether the numbers are counted, and so the same with every seed.
    """

    words: str
    holds: Span
    as_ratio: bool = False
    counted: bool = False


@dataclass(frozen=True)
class _Pair:
    """Two summaries of one quantity."""

    quantity: Quantity
    this: Summary
    other: Summary

    @property
    def difference(self) -> float:
        return self.this.mean - self.other.mean

    @property
    def ratio(self) -> float:
        return self.this.mean / self.other.mean if self.other.mean else math.nan

    @property
    def sides(self) -> tuple[Summary, Summary]:
        return self.this, self.other

    @property
    def one_seed(self) -> bool:
        """Whether a side has no spread of its own; that of the other side is used for it."""
        return min(side.count for side in self.sides) < 2

    @property
    def error(self) -> float | None:
        """The standard error of the difference; `None` if both sides have one seed."""
        errors = self._errors()
        return None if errors is None else math.hypot(*errors)

    @property
    def ratio_error(self) -> float | None:
        """The standard error of the ratio; `None` if both sides have one seed."""
        errors = self._errors()
        if errors is None:
            return None
        shares = (error / side.mean if side.mean else 0.0 for error, side in zip(errors, self.sides, strict=True))
        return self.ratio * math.hypot(*shares)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the error: those of the only side with several seeds, else by Welch-Satterthwaite."""
        if self.one_seed:
            return max(side.count for side in self.sides) - 1 or math.inf
        squares = [error**2 for error in self._errors() or ()]
        parts = [v**2 / (side.count - 1) for v, side in zip(squares, self.sides, strict=True) if v]
        return sum(squares) ** 2 / sum(parts) if parts else math.inf

    def _errors(self) -> tuple[float, ...] | None:
        """The standard error of each mean."""
        known = [side.spread for side in self.sides if side.spread is not None]
        if not known:
            return None
        spreads = known if len(known) == 2 else known * 2
        return tuple(spread / math.sqrt(side.count) for spread, side in zip(spreads, self.sides, strict=True))

    def judge(self, claim: _Claim) -> Verdict:
        """The verdict of the numbers."""
        value, error = (self.ratio, self.ratio_error) if claim.as_ratio else (self.difference, self.error)
        if claim.counted:
            return claim.holds.verdict(value, 0.0)
        return claim.holds.verdict(value, error, self.freedom, one_seed=self.one_seed)


def higher(metric: str | Quantity, this: Labels, than: Labels, claim: str) -> View:
    """The claim that `this` exceeds `than` in a metric.

    Examples:
        >>> view = higher("accuracy", {"method": "BatchEnsemble"}, {"method": "Single"}, "It beats one network.")
        >>> view(Evidence("cifar", "smoke", ())).verdict.value
        'not measured'
    """
    return _compare(metric, this, than, _Claim(claim, Span(low=math.nextafter(0.0, math.inf))))


def lower(metric: str | Quantity, this: Labels, than: Labels, claim: str, *, counted: bool = False) -> View:
    """The claim that `this` is below `than` in a metric.

    Args:
        metric: name of a metric, or a `Quantity` for another.
        this: labels of the one.
        than: labels of the other.
        claim: the claim in words.
        counted: whether the metric is counted, such as parameters: it is the same with every seed, and one is enough.
    """
    return _compare(metric, this, than, _Claim(claim, Span(high=math.nextafter(0.0, -math.inf)), counted=counted))


def on_a_par(metric: str | Quantity, this: Labels, with_: Labels, claim: str, *, within: float) -> View:
    """The claim that `this` and `with_` differ by at most `within` (in the metric's own unit), whichever is better."""
    return _compare(metric, this, with_, _Claim(claim, Span(-within, within)))


def no_better(metric: str | Quantity, this: Labels, than: Labels, claim: str, *, within: float) -> View:
    """The claim that `this` is better than `than` by at most `within` (in the metric's own unit); it may be worse.

    Raises:
        ValueError: the metric has no better direction.
    """
    return _compare(metric, this, than, _Claim(claim, Span(high=within) if _rises(metric) else Span(low=-within)))


def no_worse(metric: str | Quantity, this: Labels, than: Labels, claim: str, *, within: float) -> View:
    """The claim that `this` is worse than `than` by at most `within` (in the metric's own unit); it may be better.

    Raises:
        ValueError: the metric has no better direction.
    """
    return _compare(metric, this, than, _Claim(claim, Span(low=-within) if _rises(metric) else Span(high=within)))


def ratio(
    metric: str | Quantity,
    this: Labels,
    over: Labels,
    claim: str,
    *,
    at_least: float = 0.0,
    at_most: float = float("inf"),
    counted: bool = False,
) -> View:
    """The claim that `this` has between `at_least` and `at_most` times as much of a metric as `over`.

    As in `lower`, `counted` is for metrics that are the same with every seed.
    """
    return _compare(metric, this, over, _Claim(claim, Span(at_least, at_most), as_ratio=True, counted=counted))


def _rises(metric: str | Quantity) -> bool:
    """Whether higher is better."""
    shown = quantity(metric)
    if shown.better is None:
        raise ValueError(f"neither more nor less {shown.name} is better: say which with a Quantity")
    return shown.better == "higher"


def _compare(metric: str | Quantity, this: Labels, other: Labels, claim: _Claim) -> View:
    shown = quantity(metric)

    def view(evidence: Evidence) -> Check:
        first, second = (evidence.summary(shown.metric, **labels) for labels in (this, other))
        if first is None or second is None:
            absent = _name(this) if first is None else _name(other)
            return Check(claim.words, Verdict.OPEN, f"No {shown.name} of {absent}.")
        pair = _Pair(shown, first, second)
        words = f"{_said(shown, this, first)}; {_said(shown, other, second)}; {_difference(pair, claim)}."
        return Check(claim.words, pair.judge(claim), words)

    return view


def _difference(pair: _Pair, claim: _Claim) -> str:
    if claim.as_ratio and pair.other.mean:
        return f"{pair.ratio:.2f} times as much"
    sign = "+" if pair.difference >= 0 else "-"
    words = f"{sign}{pair.quantity.text(abs(pair.difference))}{_unit(pair.quantity, 'points')}"
    if claim.counted or pair.error is None:
        return words
    alike = ", assuming equal spread" if pair.one_seed else ""
    return f"{words} with a standard error of {pair.quantity.text(pair.error)}{alike}"


def _said(shown: Quantity, labels: Labels, summary: Summary) -> str:
    return f"{_name(labels)}: {shown.summary(summary)}{_unit(shown)} (n = {summary.count})"


def _unit(shown: Quantity, of_percent: str = "%") -> str:
    unit = of_percent if shown.unit == "%" else shown.unit
    return f" {unit}" if unit else ""


def _name(labels: Labels) -> str:
    return ", ".join(labels.values())
