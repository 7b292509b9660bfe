"""Tables in a terminal."""

from rich.box import SIMPLE
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable

from batchensemble.lab.report.table import Line, Table

WIDEST = 1000  # in characters; wider than any table needs


def print_whole(console: Console, table: RichTable) -> None:
    """Print all columns of a table, however narrow the terminal; rich would drop some instead of wrapping lines."""
    least = Measurement.get(console, console.options.update_width(WIDEST), table).minimum
    if least > console.width:
        table.width = least
    console.print(table, crop=False)


def drawn(table: Table) -> RichTable:
    """Lay out a table for the terminal: our number, and the paper's in brackets."""
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
        longest = max(len(word) for text in texts for word in text.replace(" ± ", "_±_").split() or [""])
        shown.add_column(texts[0], min_width=longest, justify="left" if key else "right")  # words stay whole
    for row in rows:
        shown.add_row(*row)
    return shown


def _texts(line: Line, table: Table) -> list[str]:
    """Format the cells of a line, the paper's numbers in brackets."""
    both = [
        (cell.ours_text(c.quantity), cell.paper_text(c.quantity))
        for cell, c in zip(line.cells, table.columns, strict=True)
    ]
    return [*line.labels, *(f"{ours} ({paper})" if paper else ours for ours, paper in both), *line.facts]
