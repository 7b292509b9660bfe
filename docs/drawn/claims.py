"""What became of the paper's claims, in the words of the report."""

import inspect
from collections.abc import Iterable, Iterator, Mapping

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.records import Scale
from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.views import View
from drawn.records import evidence_of, markdown

MEASURED: Mapping[str, tuple[Scale, ...]] = {
    "cifar-accuracy": ("paper", "short"),
    "cifar-calibration": ("paper", "short"),
    "cifar-corruption": ("paper", "short"),
    "cifar-unseen": ("paper", "short"),
    "lifelong-cifar100": ("small",),
    "lifelong-cost": ("small",),
    "bandits": ("paper",),
    "translation-ende": ("small",),
}
"""The scales of each experiment, the largest first."""


def claims() -> str:
    """What became of the claims of the paper, in the words of the report."""
    rows = [
        (f"{name}, {scale}", check.claim, f"**{check.verdict.value}**", check.words)
        for name, scales in MEASURED.items()
        for scale, check in _at_largest_scale(name, scales).values()
    ]
    return markdown(("experiment, scale", "the paper's claim", "here", "numbers"), rows, labels=4)


def _at_largest_scale(name: str, scales: Iterable[Scale]) -> dict[str, tuple[Scale, Check]]:
    """Every claim of an experiment that was measured."""
    found: dict[str, tuple[Scale, Check]] = {}
    for scale in scales:
        for check in _checks(evidence_of(name, scale), EXPERIMENTS[name].show):
            if check.verdict is not Verdict.OPEN:
                found.setdefault(check.claim, (scale, check))
    return found


def _checks(evidence: Evidence, views: Iterable[View]) -> Iterator[Check]:
    for view in views:
        if inspect.get_annotations(view).get("return") is Check:  # tables and figures would be drawn for nothing
            found = view(evidence)
            if isinstance(found, Check):
                yield found
