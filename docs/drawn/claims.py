"""What became of the paper's claims, in the words of the report."""

import inspect
from collections.abc import Iterable, Iterator, Mapping

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.records import Scale
from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.views import View
from drawn.records import evidence_of

MEASURED: Mapping[str, Scale] = {
    "cifar-accuracy": "short",
    "cifar-calibration": "short",
    "cifar-corruption": "short",
    "cifar-unseen": "short",
    "lifelong-cifar100": "small",
    "lifelong-cost": "small",
    "bandits": "paper",
    "translation-ende": "small",
}


def claims() -> str:
    """What became of the claims of the paper, in the words of the report."""
    lines = ["| experiment, scale | the paper's claim | here | numbers |", "|---|---|---|---|"]
    for name, scale in MEASURED.items():
        for check in _checks(evidence_of(name, scale), EXPERIMENTS[name].show):
            if check.verdict is not Verdict.OPEN:
                lines.append(f"| {name}, {scale} | {check.claim} | **{check.verdict.value}** | {check.words} |")
    return "\n".join(lines)


def _checks(evidence: Evidence, views: Iterable[View]) -> Iterator[Check]:
    for view in views:
        if inspect.get_annotations(view).get("return") is Check:  # tables and figures would be drawn for nothing
            found = view(evidence)
            if isinstance(found, Check):
                yield found
