"""What an experiment is: a value that says what to run, what to draw, and what the paper found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batchensemble.lab.records import Published, Result, Run, Scale
from batchensemble.lab.store import Store
from batchensemble.lab.studies.study import Study

Show = Callable[[Sequence[Result], Sequence[Published]], Any]
"""What the report draws: results of one scale and the paper's numbers in, one table or figure out."""


@dataclass(frozen=True)
class Row:
    """One line of a grid.

    Args:
        labels: place it in tables and figures.
        settings: of its runs.
        seeds: instead of the grid's.
    """

    labels: Mapping[str, str]
    settings: Any
    seeds: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Grid:
    """The runs of one scale: every row with every seed of its own or else of the grid."""

    rows: tuple[Row, ...]
    seeds: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Case:
    """A run in its place in an experiment."""

    labels: Mapping[str, str]
    run: Run


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Args:
        id: what the command line calls it.
        item: the paper's table or figure, in its words.
        claim: what the paper says it shows.
        study: the kind of work its runs are.
        scales: the grid of runs at `smoke`, `small` and `paper`.
        show: what the report draws from the results.
        published: the paper's numbers, printed beside ours.
    """

    id: str
    item: str
    claim: str
    study: Study
    scales: Mapping[Scale, Grid]
    show: tuple[Show, ...] = ()
    published: tuple[Published, ...] = ()

    def cases(self, scale: Scale, seeds: Sequence[int] | None = None) -> tuple[Case, ...]:
        """The runs at a scale, row by row; `seeds` instead of those of rows and grid if given."""
        if scale not in self.scales:
            raise ValueError(f"{self.id} has the scales {', '.join(self.scales)}; got {scale!r}")
        grid = self.scales[scale]
        return tuple(
            Case(row.labels, Run(self.study.name, row.settings, scale, seed))
            for row in grid.rows
            for seed in seeds or row.seeds or grid.seeds
        )

    def results(self, store: Store, scale: Scale, seeds: Sequence[int] | None = None) -> tuple[Result, ...]:
        """The records that are there for a scale, in their places."""
        return tuple(
            Result(case.labels, store.get(case.run)) for case in self.cases(scale, seeds) if store.has(case.run)
        )
