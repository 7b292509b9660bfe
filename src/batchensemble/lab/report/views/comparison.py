"""The table of an experiment: methods down, metrics across."""

from collections.abc import Iterable, Sequence
from itertools import product

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, number_of
from batchensemble.lab.report.quantity import Quantity, quantity, sentence
from batchensemble.lab.report.table import Cell, Column, Line, Table
from batchensemble.lab.report.views.view import View

SPREAD = "± is the sample standard deviation over seeds."


def comparison(
    *metrics: str | Quantity,
    rows: str | Sequence[str] = "method",
    columns: str | None = None,
    name: str = "table",
    title: str = "",
) -> View:
    """Tabulate metrics; a cell whose run is missing says so.

    Rows of which nothing was run are left out as long as there are others; the caption counts what is missing.

    Args:
        metrics: names of metrics, or `Quantity` objects for others.
        rows: the label, or labels, that tell rows apart.
        columns: a label, such as the data set, that gets a block of columns for each of its values.
        name: name of its files.
        title: what it shows; the names of the metrics by default.

    Examples:
        >>> print(comparison("accuracy")(Evidence("cifar", "smoke", ())).headings)
        ('method', 'accuracy (%)', 'seeds')
    """
    keys = (rows,) if isinstance(rows, str) else tuple(rows)
    shown = tuple(map(quantity, metrics))

    def view(evidence: Evidence) -> Table:
        blocks = [{columns: value} for value in evidence.labels(columns)] if columns else [{}]
        heads = tuple(Column(one, "".join(block.values())) for block, one in product(blocks, shown))
        with_epochs = any(True for _ in evidence.with_metric("epochs"))
        lines = tuple(_line(evidence, place, blocks, shown, with_epochs) for place in _rows(evidence, keys))
        caption = f"{SPREAD} {circumstances(evidence)}" if _spread(lines) else circumstances(evidence)
        facts = ("seeds", "epochs") if with_epochs else ("seeds",)
        return Table(name, title or sentence(one.name for one in shown), caption, keys, heads, lines, facts)

    return view


def _spread(lines: Iterable[Line]) -> bool:
    """Whether any number has a ±, which needs an explanation."""
    return any(cell.ours is not None and cell.ours.spread is not None for line in lines for cell in line.cells)


def _rows(evidence: Evidence, keys: tuple[str, ...]) -> list[dict[str, str]]:
    """The labels of every row of which something was run, in grid order; of all rows if nothing was."""
    places = [place for place in evidence.places if place.record] or evidence.places
    run = {tuple(place.labels.get(key, "") for key in keys) for place in places}
    found = dict.fromkeys(tuple(place.labels.get(key, "") for key in keys) for place in evidence.places)
    return [dict(zip(keys, values, strict=True)) for values in found if values in run]


def _line(
    evidence: Evidence,
    row: dict[str, str],
    blocks: list[dict[str, str]],
    shown: tuple[Quantity, ...],
    with_epochs: bool,
) -> Line:
    cells = tuple(_cell(evidence, {**row, **block}, one) for block, one in product(blocks, shown))
    parts = [evidence.where(**row, **block) for block in blocks]
    seeds, epochs = _unique(map(_seeds, parts)), _unique(map(_epochs, parts))
    return Line(tuple(row.values()), cells, (seeds, epochs) if with_epochs else (seeds,))


def _cell(evidence: Evidence, labels: dict[str, str], shown: Quantity) -> Cell:
    part = evidence.where(**labels)
    why = "not measured" if part.results else "missing" if part.places else ""
    return Cell(evidence.summary(shown.metric, **labels), evidence.paper(shown.metric, **labels), why)


def _seeds(part: Evidence) -> str:
    there, asked = len(part.results), len(part.places)
    return str(there) if there == asked else f"{there} of {asked}"


def _epochs(part: Evidence) -> str:
    found = {number for result in part.results if (number := number_of(result.record, "epochs")) is not None}
    return ", ".join(f"{epochs:g}" for epochs in sorted(found))


def _unique(texts: Iterable[str]) -> str:
    """Join the texts of several blocks, writing equal ones once."""
    return " / ".join(dict.fromkeys(text for text in texts if text))
