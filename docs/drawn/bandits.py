"""Contextual bandits."""

from batchensemble.lab.report.views import rewards_table
from batchensemble.lab.report.views.regret import P_VALUE, VALUE, Regrets, over_trials, p_value
from batchensemble.lab.report.views.regret_tables import REGRET
from drawn.records import drawn_table, evidence_of, markdown, where


def bandits() -> str:
    """Mean values of the bandit table at paper scale, best first."""
    evidence = evidence_of("bandits", "paper")
    regrets = Regrets.of(evidence)
    rows = []
    for method in sorted(regrets.complete, key=lambda one: float(regrets.value(one).mean())):
        value = over_trials(regrets.value(method))
        paper = " / ".join(VALUE.text(number.value) for number in evidence.paper("mean_value", method=method))
        cells = (REGRET.text(regrets.trials[method, problem].mean().item()) for problem in regrets.problems)
        rows.append((method, VALUE.summary(value), paper, *cells))
    table = markdown(("method", "mean value", "the paper's", *regrets.problems), rows)
    trials = len(regrets.value("Uniform"))
    return f"{table}\n\n{trials} trials of 2000 contexts, ± standard error. {where(evidence)} {_small()}"


def _small() -> str:
    """What the same table takes on a small machine."""
    made = [result.record.provenance for result in evidence_of("bandits", "small").results]
    minutes = sum(one.seconds for one in made) / 60
    return f"`--scale small` took {minutes:.0f} minutes on {made[0].hardware}."


def bandits_paired() -> str:
    """How far the others' mean values are from BatchEnsemble's on the same trials, and paired tests of it."""
    regrets = Regrets.of(evidence_of("bandits", "paper"))
    ours = ("BatchEnsemble8", "BatchEnsemble4")
    others = [method for method in regrets.complete if method not in (*ours, "Uniform")]
    others.sort(key=lambda one: float(regrets.value(one).mean()))
    rows = [(method, *(cell for one in ours for cell in _paired(regrets, method, one))) for method in others]
    return markdown(("mean value minus that of", *(cell for one in ours for cell in (one, "p"))), rows)


def _paired(regrets: Regrets, method: str, than: str) -> tuple[str, str]:
    theirs, ours = regrets.value(method), regrets.value(than)
    return VALUE.summary(over_trials(theirs - ours)), P_VALUE.text(p_value(theirs, ours))


def bandits_rewards() -> str:
    """Total rewards on mushroom beside a game of the benchmark's released example."""
    table = drawn_table(evidence_of("bandits", "paper"), rewards_table("Mushroom"))
    shown = table.columns[0].quantity
    told = {line.labels[0]: line.cells[0] for line in table.lines if line.cells[0].paper}
    best_first = sorted(told.items(), key=lambda item: -item[1].paper[0].value)
    columns = ("mushroom, total reward of 2000 contexts", "here, ± deviation of a game", "released example")
    return markdown(columns, [(name, cell.ours_text(shown), cell.paper_text(shown)) for name, cell in best_first])
