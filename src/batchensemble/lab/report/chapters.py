"""The content of a report: every experiment with its tables, figures and checks, at every scale that was run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from batchensemble.lab.records import SCALES, Published, Record, Scale
from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.evaluate import evaluate
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import quantity
from batchensemble.lab.report.table import Cell, Column, Line, Table
from batchensemble.lab.report.views.view import View

Named = TypeVar("Named", Table, Figure)


class Experiment(Protocol):
    """What the report needs to know about an experiment."""

    @property
    def id(self) -> str:
        """Its name on the command line."""
        ...

    @property
    def item(self) -> str:
        """The paper's table or figure."""
        ...

    @property
    def claim(self) -> str:
        """What the paper says it shows."""
        ...

    @property
    def scales(self) -> Mapping[Scale, object]:
        """The scales at which it can be run."""
        ...

    @property
    def show(self) -> Sequence[View]:
        """The views to draw."""
        ...

    @property
    def published(self) -> Sequence[Published]:
        """The paper's numbers."""
        ...

    def evidence(self, records: Iterable[Record], scale: Scale) -> Evidence:
        """Collect the evidence in records at a scale."""
        ...


@dataclass(frozen=True)
class Section:
    """An experiment at one scale.

    Args:
        evidence: what it is drawn from.
        tables: tables in the order of the experiment's views.
        figures: figures in the same order.
        checks: checks in the same order.
        undrawn: reasons why views had nothing to show.
    """

    evidence: Evidence
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    checks: tuple[Check, ...] = ()
    undrawn: tuple[str, ...] = ()

    @property
    def scale(self) -> Scale:
        """The scale of all its runs."""
        return self.evidence.scale

    @property
    def extent(self) -> str:
        """The scale, and how many of its runs are there unless all are."""
        asked, missing = self.evidence.asked, len(self.evidence.missing)
        return f"{self.scale} {asked - missing}/{asked}" if missing else self.scale

    @property
    def measured(self) -> tuple[Check, ...]:
        """The claims that could be checked against numbers."""
        return tuple(check for check in self.checks if check.verdict is not Verdict.OPEN)

    @property
    def open(self) -> tuple[Check, ...]:
        """The claims that could not be checked."""
        return tuple(check for check in self.checks if check.verdict is Verdict.OPEN)

    def count(self, verdict: Verdict) -> int:
        """Count the claims with this verdict."""
        return sum(check.verdict is verdict for check in self.checks)


@dataclass(frozen=True)
class Chapter:
    """An experiment: the paper's words, and a section for every scale that was run, the paper's scale first."""

    id: str
    item: str
    claim: str
    sections: tuple[Section, ...]
    not_run: tuple[Scale, ...]
    published: Table | None = None

    @property
    def judged(self) -> Section | None:
        """The section of the largest scale at which a claim was measured, else of the largest; never of smoke."""
        found = [section for section in self.sections if section.scale != "smoke"]
        return next((section for section in found if section.measured), next(iter(found), None))


def chapters(records: Iterable[Record], experiments: Iterable[Experiment]) -> list[Chapter]:
    """Build a chapter for every experiment from the records."""
    records = list(records)
    return [_chapter(experiment, records) for experiment in experiments]


def _chapter(experiment: Experiment, records: list[Record]) -> Chapter:
    scales = [scale for scale in reversed(SCALES) if scale in experiment.scales]
    found = {scale: experiment.evidence(records, scale) for scale in scales}
    sections = tuple(section_of(evidence, experiment.show) for evidence in found.values() if evidence.results)
    not_run = tuple(scale for scale in scales if not found[scale].results)
    beside = {number for section in sections for table in section.tables for number in _beside(table)}
    rest = [number for number in experiment.published if _key(number) not in beside]
    return Chapter(experiment.id, experiment.item, experiment.claim, sections, not_run, published_table(rest))


def section_of(evidence: Evidence, views: Iterable[View]) -> Section:
    """Evaluate views, and sort what they show by its kind."""
    shown: list[Table | Figure | Check] = []
    undrawn = []
    for view in views:
        try:
            shown.append(evaluate(view, evidence))
        except NotMeasured as reason:
            undrawn.append(str(reason))
    return Section(
        evidence,
        tuple(_named_apart([one for one in shown if isinstance(one, Table)])),
        tuple(_named_apart([one for one in shown if isinstance(one, Figure)])),
        tuple(one for one in shown if isinstance(one, Check)),
        tuple(dict.fromkeys(undrawn)),
    )


def _named_apart(named: Sequence[Named]) -> Iterator[Named]:
    """Make names unique, since files are named after them."""
    seen: dict[str, int] = {}
    for one in named:
        seen[one.name] = seen.get(one.name, 0) + 1
        yield one if seen[one.name] == 1 else replace(one, name=f"{one.name}-{seen[one.name]}")


def published_table(numbers: Sequence[Published]) -> Table | None:
    """A table of the paper's numbers that have no place in ours: first label down, the others across.

    Examples:
        >>> table = published_table([Published({"method": "Single", "data": "CIFAR-10"}, "accuracy", 0.9531)])
        >>> table.headings, table.lines[0].cells[0].paper_text(table.columns[0].quantity)
        (('method', 'CIFAR-10, accuracy (%)'), '95.31')
    """
    if not numbers:
        return None
    places: dict[str, dict[Column, list[Published]]] = {}
    for number in numbers:
        row, *groups = number.labels.values()
        column = Column(quantity(number.metric), ", ".join(groups))
        places.setdefault(row, {}).setdefault(column, []).append(number)
    columns = tuple(dict.fromkeys(column for cells in places.values() for column in cells))
    lines = tuple(
        Line((row,), tuple(Cell(None, tuple(cells.get(column, ())), "") for column in columns))
        for row, cells in places.items()
    )
    heading = next(iter(numbers[0].labels))
    caption = "As published. Nothing of ours was measured in the same setting."
    return Table("published", "The paper's numbers", caption, (heading,), columns, lines)


def _beside(table: Table) -> Iterator[tuple[object, ...]]:
    """The paper's numbers that a table prints beside ours, or where ours would be."""
    for line in table.lines:
        for cell in line.cells:
            yield from map(_key, cell.paper)


def _key(number: Published) -> tuple[object, ...]:
    return (number.metric, frozenset(number.labels.items()), number.value)
