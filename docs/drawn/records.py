"""What the blocks are drawn from, and the line under each that says where it was measured."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.records import Record, Scale
from batchensemble.lab.report.circumstances import epochs_of, seed_counts
from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.table import Table
from batchensemble.lab.report.views import View
from batchensemble.lab.store import Store

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"


def evidence_of(experiment: str, scale: Scale) -> Evidence:
    """What the records have to show of an experiment at a scale."""
    runs = [case.run for case in EXPERIMENTS[experiment].cases(scale)]
    return EXPERIMENTS[experiment].evidence(Store(RESULTS).some(runs), scale)


def only(evidence: Evidence, **labels: str) -> Record:
    """The one record with these labels."""
    (result,) = evidence.where(**labels).results
    return result.record


def drawn_table(evidence: Evidence, view: View) -> Table:
    """What a view draws, which has to be a table."""
    table = view(evidence)
    if not isinstance(table, Table):
        raise TypeError(f"expected a view that draws a table, it drew {table!r}")
    return table


def body(evidence: Evidence, view: View, *, epochs: bool = False) -> str:
    """A table of the report without its title, and without the seeds that the line under it names."""
    table = drawn_table(evidence, view)
    kept = slice(table.facts.index("epochs"), None) if epochs else slice(0)
    lines = tuple(replace(line, facts=line.facts[kept]) for line in table.lines)
    table = replace(table, facts=table.facts[kept], lines=lines)
    _, body, _ = table.markdown().split("\n\n", 2)
    return f"{body}\n\n{where(evidence)}"


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]], *, labels: int = 1) -> str:
    """A table: its first `labels` columns are aligned left and the others, which hold numbers, right."""
    heading = f"| {' | '.join(columns).lstrip()} |"  # the first one may be empty
    rule = "|---" * labels + "|---:" * (len(columns) - labels) + "|"
    return "\n".join((heading, rule, *(f"| {' | '.join(row)} |" for row in rows)))


def lead(differences: Tensor, digits: int) -> str:
    """The mean of paired differences, with its standard error."""
    return f"{differences.mean():+.{digits}f} ± {differences.std() / len(differences) ** 0.5:.{digits}f}"


def recorded(experiment: str, scale: Scale) -> Evidence:
    """What there is a record of, without the places of missing runs."""
    evidence = evidence_of(experiment, scale)
    return replace(evidence, places=tuple(place for place in evidence.places if place.record))


def where(evidence: Evidence) -> str:
    """Scale, seeds, epochs and machine in a line."""
    records = [result.record for result in evidence.results]
    made = [record.provenance for record in records]
    parts = [f"Scale `{evidence.scale}`", seed_counts(evidence), epochs_of(records)]
    parts += dict.fromkeys(f"{one.hardware}, torch {one.versions['torch']}" for one in made)
    return f"{'; '.join(filter(None, parts))}."


def speeds(folder: str) -> list[dict[str, Any]]:
    """Every machine's file in a folder of results/."""
    return [json.loads(path.read_text()) for path in sorted((RESULTS / folder).glob("*.json"))]


def made(provenance: dict[str, Any]) -> str:
    """Machine and torch of a file; its commit stays in the record."""
    return f"{provenance['hardware']}, torch {provenance['versions']['torch']}"
