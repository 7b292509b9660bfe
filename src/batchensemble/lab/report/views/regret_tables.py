"""Tables of bandits: regrets, paired differences, rewards beside a published game."""

from collections.abc import Mapping, Sequence
from itertools import product

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured, Summary
from batchensemble.lab.report.quantity import Quantity, quantity
from batchensemble.lab.report.table import Cell, Column, Line, Table
from batchensemble.lab.report.views.regret import METRIC, P_VALUE, VALUE, Regrets, in_words, over_trials, p_value
from batchensemble.lab.report.views.view import View

RANK = Quantity("mean_rank", "mean rank", digits=2, better="lower")
REGRET = Quantity(METRIC, "regret", digits=2, better="lower")
DIFFERENCE = Quantity("difference", "difference", digits=2)
UNIFORM = "Uniform"
HOW = "Regret as a percentage of Uniform's on the same data; ± is the standard error of the mean over {trials}."
RANKS = "The paper ranks at least 16 methods, 13 of which are known, so its ranks are higher than ranks among these."


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
        caption = f"{HOW.format(trials=in_words(map(len, regrets.trials.values())))} {RANKS} {circumstances(evidence)}"
        return Table(name, title, caption, ("method",), columns, lines)

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


def paired_table(against: str) -> View:
    """A table of every method's difference from `against` on the same trials, with p-values."""

    def view(evidence: Evidence) -> Table:
        regrets = Regrets.of(evidence)
        blocks = {"all problems": regrets.problems, **{problem: (problem,) for problem in regrets.problems}}
        columns = tuple(Column(shown, block) for block, shown in product(blocks, (DIFFERENCE, P_VALUE)))
        lines = tuple(
            Line((method,), tuple(cell for some in blocks.values() for cell in _pair(regrets, method, against, some)))
            for method in regrets.methods
            if method != against
        )
        trials = in_words(cell.ours.count for line in lines for cell in line.cells if cell.ours)
        how = f"Regret minus that of {against} on the same {trials}, ± its standard error"
        caption = f"{how}; p by flipping signs, two-sided. {circumstances(evidence)}"
        return Table("paired", f"Differences from {against}", caption, ("method",), columns, lines)

    return view


def _pair(regrets: Regrets, method: str, against: str, problems: Sequence[str]) -> tuple[Cell, Cell]:
    pair = regrets.pair(method, against, problems)
    if pair is None:
        return Cell(), Cell()
    return Cell(over_trials(pair[0] - pair[1])), Cell(Summary(p_value(*pair), None, len(pair[0])))


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
