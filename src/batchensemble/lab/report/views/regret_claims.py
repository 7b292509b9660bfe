"""Claims about the mean value of bandits: the best of all, or better than another."""

from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.views.regret import P_VALUE, VALUE, Regrets, over_trials, p_value
from batchensemble.lab.report.views.view import View

NOISE = 0.05  # p-values from here on are not evidence


def best_mean_value(method: str, claim: str) -> View:
    """The claim that a method has the lowest mean value of all."""

    def view(evidence: Evidence) -> Check:
        regrets = _regrets(evidence)
        if regrets is None or method not in regrets.complete or len(regrets.complete) < 2:
            return Check(claim, Verdict.OPEN, f"{method} and a rival have not played every problem.")
        values = {one: regrets.value(one).mean().item() for one in regrets.complete}
        best = min(values, key=values.__getitem__)
        rival = min((one for one in values if one != method), key=values.__getitem__)
        return _check(claim, best == method, regrets, method, rival)

    return view


def lower_mean_value(method: str, than: str, claim: str) -> View:
    """The claim that a method has a lower mean value than another."""

    def view(evidence: Evidence) -> Check:
        regrets = _regrets(evidence)
        if regrets is None or not {method, than} <= set(regrets.complete):
            return Check(claim, Verdict.OPEN, f"{method} and {than} have not both played every problem.")
        lower = regrets.value(method).mean() < regrets.value(than).mean()
        return _check(claim, bool(lower), regrets, method, than)

    return view


def _regrets(evidence: Evidence) -> Regrets | None:
    try:
        return Regrets.of(evidence)
    except NotMeasured:
        return None


def _check(claim: str, holds: bool, regrets: Regrets, method: str, other: str) -> Check:
    pair = regrets.pair(method, other)
    if pair is None:
        return Check(claim, Verdict.OPEN, f"{method} and {other} have not played the same games.")
    value, other_value = (VALUE.summary(over_trials(trials)) for trials in pair)
    count = len(pair[0])
    noise, said = _noise(p_value(*pair), count)
    words = (
        f"{method} {value} against {other} {other_value} (mean over problems ± standard error, {count} trials): {said}."
    )
    return Check(claim, Verdict.of(holds, within_noise=noise), words)


def _noise(p: float, trials: int) -> tuple[bool, str]:
    """Whether a p-value may be noise, and that in words; with too few trials it always may."""
    least = 2.0 ** (1 - trials)
    if least >= NOISE:
        few = f"too few trials to tell from noise, p = {p:.3f} where {trials} cannot give less than {least:.3f}"
        return True, few
    noise = p >= NOISE
    return noise, f"{'within' if noise else 'beyond'} the noise of the trials, {_p_words(p)}"


def _p_words(p: float) -> str:
    text = P_VALUE.text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
