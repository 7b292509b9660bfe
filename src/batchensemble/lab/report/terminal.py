"""Tables in a terminal."""

from rich.box import SIMPLE
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable

from batchensemble.lab.report.table import Line, Table

WIDEST = 1000  # columns of characters that no table needs


def print_whole(console: Console, table: RichTable) -> None:
    """A table with all its columns, however narrow the terminal, which wraps long lines; rich would leave some out."""
    least = Measurement.get(console, console.options.update_width(WIDEST), table).minimum
    if least > console.width:
        table.width = least
    console.print(table, crop=False)


def drawn(table: Table) -> RichTable:
    """A table for the terminal: ours, and the paper's number in brackets."""
    shown = RichTable(
        title=table.title,
        caption=table.caption,
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        title_justify="left",
        caption_justify="left",
    )
    rows = [_texts(line, table) for line in table.lines]
    for place, texts in enumerate(zip(table.headings, *rows, strict=True)):
        key = place < len(table.keys)
        longest = max(len(word) for text in texts for word in (text.split() or [""]))
        shown.add_column(texts[0], min_width=longest, justify="left" if key else "right")  # words stay whole
    for row in rows:
        shown.add_row(*row)
    return shown


def _texts(line: Line, table: Table) -> list[str]:
    """The cells of a line; the paper's number in brackets."""
    both = [
        (cell.ours_text(c.quantity), cell.paper_text(c.quantity))
        for cell, c in zip(line.cells, table.columns, strict=True)
    ]
    return [*line.labels, *(f"{ours} ({paper})" if paper else ours for ours, paper in both), *line.facts]
