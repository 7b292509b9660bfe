"""Experiments as values: what to run, what to draw, and what the paper found."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from batchensemble.lab.records import SCALES, Published, Record, Run, Scale
from batchensemble.lab.report.evidence import Evidence, Place
from batchensemble.lab.report.views.view import View
from batchensemble.lab.studies.study import Study


@dataclass(frozen=True)
class Row:
    """One row of a grid.

    Args:
        labels: its place in tables and figures.
        settings: the settings of its runs: the study's `Settings`, or a mapping.
        seeds: seeds to use instead of the grid's.
    """

    labels: Mapping[str, str]
    settings: Any
    seeds: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Grid:
    """The runs of one scale: every row with each of its own seeds, or else the grid's."""

    rows: tuple[Row, ...]
    seeds: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Case:
    """A run with its place in an experiment."""

    labels: Mapping[str, str]
    run: Run


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Args:
        id: its name on the command line.
        item: the paper's table or figure, in the paper's words.
        claim: what the paper says it shows.
        study: the kind of work its runs do.
        scales: the grid of runs at each of the `SCALES` it supports.
        show: what the report draws from the results.
        published: the paper's numbers, printed beside ours.
    """

    id: str
    item: str
    claim: str
    study: Study
    scales: Mapping[Scale, Grid]
    show: tuple[View, ...] = ()
    published: tuple[Published, ...] = ()

    def cases(self, scale: Scale, seeds: Sequence[int] | None = None) -> tuple[Case, ...]:
        """The runs at a scale, row by row; `seeds`, if given, replaces those of rows and grid."""
        if scale not in self.scales:
            raise ValueError(
                f"{self.id} has the scales {', '.join(one for one in SCALES if one in self.scales)}; got {scale!r}"
            )
        grid = self.scales[scale]
        return tuple(
            Case(row.labels, Run(self.study.name, row.settings, scale, seed))
            for row in grid.rows
            for seed in seeds or row.seeds or grid.seeds
        )

    def evidence(self, records: Iterable[Record], scale: Scale, seeds: Sequence[int] | None = None) -> Evidence:
        """Collect the evidence in `records` at a scale: every run of the grid, and any further seeds."""
        cases = {case.run: case for case in self.cases(scale, seeds)}
        there = {record.run: record for record in records}
        asked = [Place(case.labels, run.seed, there.get(run)) for run, case in cases.items()]
        labels = {_kind(run): case.labels for run, case in cases.items()}
        others = [record for run, record in there.items() if run not in cases and _kind(run) in labels]
        further = [Place(labels[_kind(record.run)], record.run.seed, record, further=True) for record in others]
        return Evidence(self.id, scale, (*asked, *further), self.published)


def _kind(run: Run) -> str:
    """A key shared by runs that differ only in their seed."""
    return replace(run, seed=0).key
