"""Tables as values, Markdown and CSV: methods down, metrics across, the paper's number beside ours."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from batchensemble.lab.records import Published
from batchensemble.lab.report.evidence import Summary
from batchensemble.lab.report.quantity import Quantity


@dataclass(frozen=True)
class Column:
    """A column of numbers: one quantity, in a group of columns (one data set, say) or on its own.

    Args:
        quantity: what is shown.
        group: heading of its group of columns; empty if it has none.
        source: source of the published numbers beside ours.
    """

    quantity: Quantity
    group: str = ""
    source: str = "paper"

    @property
    def heading(self) -> str:
        """Group, name and unit."""
        return f"{self.group}, {self.quantity.heading}" if self.group else self.quantity.heading


@dataclass(frozen=True)
class Cell:
    """Our number and the paper's; ours is `None` if it is missing.

    Args:
        ours: summary over the seeds.
        paper: the published numbers, several if the paper gives several.
        why: what to print if ours is missing.
    """

    ours: Summary | None = None
    paper: tuple[Published, ...] = ()
    why: str = "missing"

    def ours_text(self, quantity: Quantity) -> str:
        """Format our number, or say why there is none."""
        return self.why if self.ours is None else quantity.summary(self.ours)

    def paper_text(self, quantity: Quantity) -> str:
        """Format the paper's number; empty if it gives none."""
        return " / ".join(quantity.text(number.value, number.spread) for number in self.paper)


@dataclass(frozen=True)
class Line:
    """A row: its labels, its numbers, and facts about its runs (seeds, epochs)."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table with its caption.

    Args:
        name: name of its files.
        title: what it shows.
        caption: under which circumstances it was measured.
        keys: headings of the rows' labels.
        columns: headings and quantities of the numbers.
        lines: the rows.
        facts: headings of the rows' facts.
    """

    name: str
    title: str
    caption: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    facts: tuple[str, ...] = ()

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of all columns."""
        return (*self.keys, *(column.heading for column in self.columns), *self.facts)

    def markdown(self) -> str:
        """Format the table as Markdown, with its title above and its caption below."""
        rows = [self.headings, _rule(len(self.keys), len(self.headings)), *map(self._texts, self.lines)]
        body = "\n".join(f"| {' | '.join(_escaped(row))} |" for row in rows)
        return f"**{self.title}**\n\n{body}\n\n*{self.caption}*\n"

    def csv(self) -> str:
        """Format the table as CSV: mean, spread, count and the paper's for every number; the caption comes last."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        numbers = [f"{one.heading}{part}" for one in self.columns for part in ("", " spread", " n", f" {one.source}")]
        writer.writerow([*self.keys, *numbers, *self.facts, "circumstances"])
        for line in self.lines:
            writer.writerow([*line.labels, *self._numbers(line), *line.facts, self.caption])
        return text.getvalue()

    def _texts(self, line: Line) -> tuple[str, ...]:
        pairs = zip(line.cells, self.columns, strict=True)
        return (*line.labels, *(_both(cell, column) for cell, column in pairs), *line.facts)

    def _numbers(self, line: Line) -> list[str]:
        pairs = zip(line.cells, self.columns, strict=True)
        return [text for cell, column in pairs for text in _csv_numbers(cell, column.quantity)]


def _both(cell: Cell, column: Column) -> str:
    ours, paper = cell.ours_text(column.quantity), cell.paper_text(column.quantity)
    return f"{ours} ({column.source} {paper})" if ours and paper else ours or paper


def _csv_numbers(cell: Cell, quantity: Quantity) -> tuple[str, str, str, str]:
    paper = " / ".join(f"{quantity.scaled(number.value):.6g}" for number in cell.paper)
    if cell.ours is None:
        return "", "", "0", paper
    spread = "" if cell.ours.spread is None else f"{quantity.scaled(cell.ours.spread):.6g}"
    return f"{quantity.scaled(cell.ours.mean):.6g}", spread, str(cell.ours.count), paper


def _rule(left: int, total: int) -> tuple[str, ...]:
    """Markdown's second line, which aligns labels left and numbers right."""
    return (*("---" for _ in range(left)), *("---:" for _ in range(total - left)))


def _escaped(texts: Sequence[str]) -> list[str]:
    return [text.replace("|", "\\|").replace("\n", " ") for text in texts]
