"""Bandits: the table of regrets, paired tests of differences, and the claims that rest on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from batchensemble import metrics
from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured, Summary
from batchensemble.lab.report.quantity import Quantity, quantity
from batchensemble.lab.report.table import Cell, Column, Line, Table
from batchensemble.lab.report.views.view import View

METRIC = "relative_regret"
RANK = Quantity("mean_rank", "mean rank", digits=2, better="lower")
VALUE = Quantity("mean_value", "mean value", digits=2, better="lower")
REGRET = Quantity(METRIC, "regret", digits=2, better="lower")
DIFFERENCE = Quantity("difference", "difference", digits=2)
CHANCE = Quantity("p", "p", digits=3)
UNIFORM = "Uniform"
NOISE = 0.05  # p-values from here on are not evidence
HOW = "Regret in percent of Uniform's on the same data; ± is the standard error of the mean over trials."
RANKS = "The paper ranks at least 16 methods, of which 13 are known: its ranks are larger than ranks among these."


@dataclass(frozen=True)
class Regrets:
    """Relative regrets of every trial, by method and problem, `(trials,)` for every seed; only what was measured.

    Trials of one seed are the same games for every method. Where trials are compared or averaged, only the seeds that
    all sides have in common count.
    """

    methods: tuple[str, ...]
    problems: tuple[str, ...]
    games: Mapping[tuple[str, str], Mapping[int, Tensor]]

    @classmethod
    def of(cls, evidence: Evidence) -> "Regrets":
        """Collects the regrets in the records."""
        methods, problems = evidence.labels("method"), evidence.labels("problem")
        found = {}
        for pair in product(methods, problems):
            results = evidence.with_metric(METRIC, method=pair[0], problem=pair[1])
            games = {result.record.run.seed: torch.tensor(values, dtype=torch.float64) for result, values in results}
            if games:
                found[pair] = games
        if not found:
            raise NotMeasured("no game has been played")
        played = {method for method, _ in found}
        return cls(tuple(method for method in methods if method in played), problems, found)

    @property
    def trials(self) -> dict[tuple[str, str], Tensor]:
        """All trials of each method on each problem; further seeds of a run are further trials."""
        return {pair: torch.cat(list(games.values())) for pair, games in self.games.items()}

    @property
    def complete(self) -> tuple[str, ...]:
        """Methods that played every problem; the others have neither mean value nor rank."""
        return tuple(m for m in self.methods if self.seeds([m], self.problems))

    def seeds(self, methods: Sequence[str], problems: Sequence[str]) -> list[int]:
        """Returns the seeds with which all of the methods played all of the problems."""
        return sorted(set.intersection(*(set(self.games.get(pair, ())) for pair in product(methods, problems))))

    def value(self, method: str, problems: Sequence[str] = (), beside: Sequence[str] = ()) -> Tensor:
        """Returns a method's mean over problems (all by default), trial by trial, in games that `beside` played too."""
        problems = problems or self.problems
        seeds = self.seeds([method, *beside], problems)
        return torch.stack([torch.cat([self.games[method, p][seed] for seed in seeds]) for p in problems]).mean(0)

    def ranks(self) -> dict[str, float]:
        """Returns the mean ranks of the complete methods among themselves."""
        if not self.complete:
            return {}
        rows = [torch.stack([self.trials[m, p].mean() for p in self.problems]) for m in self.complete]
        return dict(zip(self.complete, metrics.mean_rank(torch.stack(rows)).tolist(), strict=True))


def regret_table(*, at_most: float | None = None, name: str = "regret", title: str = "Regret") -> View:
    """A table of mean rank, mean value and every problem's regret, beside the paper's.

    Args:
        at_most: leave out methods with a higher mean rank, as the paper does; Uniform stays.
        name: name of its files.
        title: what it shows.
    """

    def view(evidence: Evidence) -> Table:
        regrets = Regrets.of(evidence)
        ranks = regrets.ranks()
        kept = [m for m in regrets.methods if at_most is None or m == UNIFORM or ranks.get(m, 0) <= at_most]
        columns = (Column(RANK), Column(VALUE), *(Column(REGRET, problem) for problem in regrets.problems))
        lines = tuple(Line((m,), _cells(evidence, regrets, ranks, m)) for m in kept)
        return Table(name, title, f"{HOW} {RANKS} {circumstances(evidence)}", ("method",), columns, lines)

    return view


def _cells(evidence: Evidence, regrets: Regrets, ranks: Mapping[str, float], method: str) -> tuple[Cell, ...]:
    rank = Summary(ranks[method], None, len(regrets.problems)) if method in ranks else None
    value = over_trials(regrets.value(method)) if method in ranks else None
    # The paper's means are over its own problems: show them only if ours are over the same ones.
    same = all(evidence.paper(METRIC, problem=problem) for problem in regrets.problems)
    means = (
        Cell(ours, evidence.paper(shown.metric, method=method) if same else ())
        for ours, shown in ((rank, RANK), (value, VALUE))
    )
    problems = (
        Cell(_known(regrets, method, problem), evidence.paper(METRIC, method=method, problem=problem))
        for problem in regrets.problems
    )
    return (*means, *problems)


def _known(regrets: Regrets, method: str, problem: str) -> Summary | None:
    found = regrets.trials.get((method, problem))
    return None if found is None else over_trials(found)


def over_trials(trials: Tensor) -> Summary:
    """Returns mean and standard error over trials.

    Examples:
        >>> over_trials(torch.tensor([1.0, 2.0, 3.0]))
        Summary(mean=2.0, spread=0.5773502691896258, count=3)
    """
    return Summary(trials.mean().item(), metrics.standard_error(trials).item(), len(trials))


def paired_table(against: str) -> View:
    """A table of every method's difference from `against` on the same trials, with p-values."""

    def view(evidence: Evidence) -> Table:
        regrets = Regrets.of(evidence)
        blocks = ("all problems", *regrets.problems)
        columns = tuple(Column(shown, block) for block, shown in product(blocks, (DIFFERENCE, CHANCE)))
        others = [method for method in regrets.methods if method != against]
        lines = tuple(
            Line((method,), tuple(cell for block in blocks for cell in _pair(regrets, method, against, block)))
            for method in others
        )
        how = (
            f"Regret minus that of {against} on the same trials, ± its standard error; p by flipping signs, two-sided."
        )
        caption = f"{how} {circumstances(evidence)}"
        return Table("paired", f"Differences from {against}", caption, ("method",), columns, lines)

    return view


def _pair(regrets: Regrets, method: str, against: str, block: str) -> tuple[Cell, Cell]:
    found = _both(regrets, method, against, block)
    if found is None:
        return Cell(), Cell()
    ours, theirs = found
    chance = Summary(metrics.paired_test(ours, theirs, generator=_generator()), None, len(ours))
    return Cell(over_trials(ours - theirs)), Cell(chance)


def _both(regrets: Regrets, method: str, against: str, block: str) -> tuple[Tensor, Tensor] | None:
    """Returns two methods' regrets on the same trials, of one problem or averaged over all."""
    problems = (block,) if block in regrets.problems else regrets.problems
    if not regrets.seeds([method, against], problems):
        return None
    return regrets.value(method, problems, [against]), regrets.value(against, problems, [method])


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
    found = _both(regrets, method, other, "all problems")
    if found is None:
        return Check(claim, Verdict.OPEN, f"{method} and {other} have not played the same games.")
    ours, theirs = found
    words = f"{method} {VALUE.summary(over_trials(ours))} against {other} {VALUE.summary(over_trials(theirs))}"
    noise, said = _noise(metrics.paired_test(ours, theirs, generator=_generator()), len(ours))
    words = f"{words} (mean over problems ± standard error, {len(ours)} trials): {said}."
    return Check(claim, Verdict.of(holds, within_noise=noise), words)


def _noise(chance: float, trials: int) -> tuple[bool, str]:
    """Returns whether a p-value may be noise, and says so in words; with too few trials it always may."""
    least = 2.0 ** (1 - trials)
    if least >= NOISE:
        few = f"too few trials to tell from noise, p = {chance:.3f} where {trials} cannot give less than {least:.3f}"
        return True, few
    noise = chance >= NOISE
    return noise, f"{'within' if noise else 'beyond'} the noise of the trials, p = {chance:.3f}"


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)  # so that reports are reproducible


def rewards_table(problem: str, *, source: str = "") -> View:
    """A table of total rewards on one problem, with the deviation of single games, beside a published example.

    Args:
        problem: its label.
        source: where the published numbers are from.
    """
    shown = quantity("total_reward")

    def view(evidence: Evidence) -> Table:
        part = evidence.where(problem=problem)
        if not part.results:
            raise NotMeasured(f"no game of {problem} has been played")
        lines = [Line((m,), (_rewards(part, "total_reward", m),)) for m in part.labels("method")]
        best = Cell(_deviation(part, "optimal_reward"), part.paper("optimal_reward"))
        lines.append(Line(("best choices",), (best,)))
        caption = f"± is the standard deviation of one game. {source} {circumstances(part)}"
        columns = (Column(shown, source="example"),)
        return Table("rewards", f"Total reward, {problem}", caption, ("method",), columns, tuple(lines))

    return view


def _rewards(part: Evidence, metric: str, method: str) -> Cell:
    return Cell(_deviation(part, metric, method=method), part.paper(metric, method=method))


def _deviation(part: Evidence, metric: str, **labels: str) -> Summary | None:
    lists: Sequence[Sequence[float]] = [values for _, values in part.with_metric(metric, **labels)]
    return Summary.of([value for values in lists for value in values])
