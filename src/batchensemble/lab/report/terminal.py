"""Tables in a terminal."""

from dataclasses import replace

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


def drawn(table: Table, width: int) -> RichTable:
    """Lay out a table for a terminal of so many columns: our number, and the paper's in brackets.

    Facts that are the same in every row have no column: the caption says them. Where the terminal is too narrow, texts
    are wrapped, those on the left last; words stay whole.
    """
    table = _without_equal_facts(table)
    shown = RichTable(
        title=f"{table.title}\n",
        caption=f"\n{table.caption}",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        show_edge=False,
        title_justify="left",
        caption_justify="left",
    )
    rows = [_texts(line, table) for line in table.lines]
    columns = list(zip(table.headings, *rows, strict=True))
    words = [
        max(len(word) for text in texts for word in text.replace(" ± ", "_±_").split() or [""]) for texts in columns
    ]
    spare = width - sum(words) - 2 * len(columns) + 1  # a blank for each, and dividers between them
    for place, (texts, least) in enumerate(zip(columns, words, strict=True)):
        more = max(0, min(spare, max(map(len, texts)) - least))
        spare -= more
        shown.add_column(texts[0], width=least + more, justify="left" if place < len(table.keys) else "right")
    for row in rows:
        shown.add_row(*row)
    return shown


def _without_equal_facts(table: Table) -> Table:
    kept = [place for place in range(len(table.facts)) if len({line.facts[place] for line in table.lines}) > 1]
    lines = tuple(replace(line, facts=tuple(line.facts[place] for place in kept)) for line in table.lines)
    return replace(table, facts=tuple(table.facts[place] for place in kept), lines=lines)


def _texts(line: Line, table: Table) -> list[str]:
    """Format the cells of a line, the paper's numbers in brackets."""
    both = [
        (cell.ours_text(c.quantity), cell.paper_text(c.quantity))
        for cell, c in zip(line.cells, table.columns, strict=True)
    ]
    return [*line.labels, *(f"{ours} ({paper})" if paper else ours for ours, paper in both), *line.facts]
