"""Writes records as files: tables, figures, and two pages that contain them all."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from batchensemble.disk import written_whole
from batchensemble.lab.records import Record
from batchensemble.lab.report.chapters import Chapter, Experiment, chapters
from batchensemble.lab.report.evaluate import show_readable
from batchensemble.lab.report.figure import Drawing
from batchensemble.lab.report.markdown import markdown_page
from batchensemble.lab.report.page import file_name, html_page
from batchensemble.lab.store import Skipped


def write_report(
    records: Iterable[Record],
    experiments: Iterable[Experiment],
    out_dir: Path,
    *,
    progress: bool = False,
    skipped: Skipped | None = None,
) -> list[Path]:
    """Draw every experiment from records alone; the same records give the same bytes.

    Args:
        records: all records; those that no experiment asks for are left out.
        experiments: what to draw, in this order.
        out_dir: receives `report.html` (all in one file), `report.md`, `tables/*.md` and `.csv`, `figures/*.svg` and
            `.png`.
        progress: whether to show a bar while figures are drawn.
        skipped: is told of records that cannot be drawn, which are left out; without it, they are errors.

    Returns:
        The files that were written, the two pages first.

    Raises:
        UnreadableRecord: a record cannot be drawn, and `skipped` is not given.
    """
    every = list(experiments)
    found, drawings = show_readable(lambda some: _drawn(chapters(some, every), progress), records, skipped)
    files = {"report.html": html_page(found, drawings).encode(), "report.md": markdown_page(found).encode()}
    files |= dict(_tables(found))
    for name, drawing in drawings.items():
        files |= {f"figures/{name}.svg": drawing.svg, f"figures/{name}.png": drawing.png}
    return [_write(out_dir / name, content) for name, content in files.items()]


def _drawn(found: list[Chapter], progress: bool) -> tuple[list[Chapter], dict[str, Drawing]]:
    """The chapters, and every figure, rendered, by the name of its files."""
    from rich.progress import track

    todo = [
        (file_name(section, figure), figure)
        for chapter in found
        for section in chapter.sections
        for figure in section.figures
    ]
    return found, {name: figure.render() for name, figure in track(todo, "drawing", disable=not progress)}


def _tables(found: list[Chapter]) -> Iterator[tuple[str, bytes]]:
    for chapter in found:
        for section in chapter.sections:
            for table in section.tables:
                name = f"tables/{file_name(section, table)}"
                yield f"{name}.md", table.markdown().encode()
                yield f"{name}.csv", table.csv().encode()


def _write(path: Path, content: bytes) -> Path:
    with written_whole(path) as beside:
        beside.write_bytes(content)
    return path
