"""The report as one self-contained page: styles, tables and images are embedded."""

import base64
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from batchensemble.lab.report.chapters import Chapter, Section
from batchensemble.lab.report.check import Verdict
from batchensemble.lab.report.circumstances import SCALE_MEANING, circumstances, commit_of
from batchensemble.lab.report.figure import Drawing, Figure
from batchensemble.lab.report.style import WIDTH
from batchensemble.lab.report.table import Table

MARKS = {
    Verdict.HOLDS: "✓",
    Verdict.FAILS: "✗",
    Verdict.ONE_YES: "(✓)",
    Verdict.ONE_NO: "(✗)",
    Verdict.UNDECIDED: "≈",
    Verdict.OPEN: "?",
}
TITLE = "BatchEnsemble, measured"


def html_page(chapters: Sequence[Chapter], drawings: Mapping[str, Drawing]) -> str:
    """The whole report; `drawings` are the figures by file name."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("batchensemble.lab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"data_uri": data_uri, "groups": column_groups, "wide": is_wide, "commit": commit_of}
    words = {"title": TITLE, "marks": MARKS, "verdicts": list(Verdict), "meaning": SCALE_MEANING}
    template = environment.get_template("page.html.jinja")
    counts = {"records": _records(chapters), "circumstances": circumstances, "file_name": file_name}
    return template.render(chapters=chapters, drawings=drawings, **words, **counts)


def file_name(section: Section, shown: Table | Figure) -> str:
    """The name of a table's or figure's files, without extension."""
    return f"{section.evidence.experiment}-{section.scale}-{shown.name}"


def data_uri(svg: bytes) -> str:
    """Encode an SVG as a data URI."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def column_groups(table: Table) -> list[tuple[str, int]]:
    """Names and widths of the groups of columns; empty if no column is in a group."""
    found = [(name, len(list(columns))) for name, columns in groupby(column.group for column in table.columns)]
    return found if any(name for name, _ in found) else []


def is_wide(figure: Figure) -> bool:
    """Whether a figure needs the page's full width."""
    return figure.size[0] > 1.1 * WIDTH


def _records(chapters: Sequence[Chapter]) -> int:
    runs: set[Any] = set()
    for chapter in chapters:
        for section in chapter.sections:
            runs |= {result.record.run for result in section.evidence.results}
    return len(runs)
