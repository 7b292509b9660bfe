"""Classifying the rows of tables."""

from dataclasses import replace

from batchensemble.lab.experiments.tables import SIXTEEN
from batchensemble.lab.report.evidence import Evidence, Summary
from batchensemble.lab.report.views import comparison
from drawn.records import body, evidence_of, markdown, where

DATA = ("Income", "Occupation", "Shuttle")
MADE_OF = ("accuracy", "member_accuracy", "disagreement", "ece", "train_accuracy")
GAINS = {
    "Single": "one network",
    "MC-dropout": "dropout, 16 samples (an extra layer matches 4 members in size)",
    "Naive ensemble": "4 independent networks",
    "BatchEnsemble": "4 members, split batch",
    SIXTEEN: "16 members, split batch",
}


def gains_tables() -> str:
    """What members gain on one table, each method trained for as long as suits it best."""
    evidence = evidence_of("tables", "small").where(data="Income")
    alone = _summary(_at_its_best(evidence.where(method="Single"))[0], "parameters").mean
    columns = ("accuracy (%)", "NLL", "epochs", "accuracy (%) after 30 epochs", "parameters")
    rows = []
    for method, words in GAINS.items():
        part = evidence.where(method=method)
        best, epochs = _at_its_best(part)
        accuracy, later = (_summary(one, "accuracy").mean for one in (best, part.where(length="30 epochs")))
        nll, size = _summary(best, "nll").mean, _summary(best, "parameters").mean / alone
        cells = (f"{100 * accuracy:.1f}", f"{nll:.3f}", epochs, f"{100 * later:.1f}", f"{size:.2f} x")
        rows.append((words, *cells))
    return markdown(("", *columns), rows)


def tables() -> str:
    """Every method on every table, and networks that are regularised otherwise, each at its best length."""
    ours, others = evidence_of("tables", "small"), evidence_of("tables-regularised", "small")
    evidence = replace(ours, places=(*ours.places, *others.places))
    columns = [heading for data in DATA for heading in (f"{data}: NLL", "accuracy (epochs)")]
    rows = [
        (method, *(cell for data in DATA for cell in _cells(part.where(data=data))))
        for method, part in evidence.by("method").items()
    ]
    return f"{markdown(('method', *columns), rows)}\n\n{where(evidence)}"


def tables_members() -> str:
    """What the answers about income are made of after the longest training."""
    return body(evidence_of("tables", "small").where(data="Income", length="30 epochs"), comparison(*MADE_OF))


def _cells(part: Evidence) -> tuple[str, str]:
    best, epochs = _at_its_best(part)
    nll, accuracy = _summary(best, "nll"), _summary(best, "accuracy")
    return f"{nll.mean:.4f} ± {nll.spread or 0:.4f}", f"{100 * accuracy.mean:.2f} ({epochs})"


def _at_its_best(part: Evidence) -> tuple[Evidence, str]:
    """What was measured at the length with the lowest mean NLL, and that length."""
    lengths = part.by("length")
    best = min(lengths, key=lambda length: _summary(lengths[length], "nll").mean)
    return lengths[best], best.removesuffix(" epochs")


def _summary(part: Evidence, metric: str) -> Summary:
    summary = part.summary(metric)
    if summary is None:
        raise ValueError(f"no run has {metric}")
    return summary
