"""The report as Markdown, with links to image files."""

from collections.abc import Iterator, Sequence

from batchensemble.lab.report.chapters import Chapter, Section
from batchensemble.lab.report.check import Verdict
from batchensemble.lab.report.circumstances import SCALE_MEANING, circumstances
from batchensemble.lab.report.page import TITLE, file_name


def markdown_page(chapters: Sequence[Chapter]) -> str:
    """The whole report; images are expected in `figures/`."""
    index = "\n".join(f"- [{chapter.id}](#{chapter.id}): {chapter.item} ({_state(chapter)})" for chapter in chapters)
    parts = [f"# {TITLE}", index, *(part for chapter in chapters for part in _chapter(chapter))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _state(chapter: Chapter) -> str:
    return ", ".join(section.extent for section in chapter.sections) or "not run"


def _chapter(chapter: Chapter) -> Iterator[str]:
    yield f"## {chapter.id}"
    yield f"{chapter.item}."
    yield f"> {chapter.claim}"
    for section in chapter.sections:
        yield from _section(section)
    if chapter.published:
        yield chapter.published.markdown()
    if chapter.not_run:
        yield f"Not run at: {', '.join(chapter.not_run)}."


def _section(section: Section) -> Iterator[str]:
    yield f"### {section.evidence.experiment}, {section.scale} scale"
    yield f"*{section.scale} scale: {SCALE_MEANING[section.scale]}.*"
    if section.checks:
        yield "\n".join((*(check.markdown() for check in section.measured), *_open(section)))
    for table in section.tables:
        yield table.markdown()
    for figure in section.figures:
        name = file_name(section, figure)
        yield f"**{figure.title}**\n\n![{figure.alt}](figures/{name}.png)\n\n*{figure.caption}*"
    if section.undrawn:
        yield f"Not drawn: {'; '.join(section.undrawn)}."
    if section.evidence.missing:
        yield f"Missing: {_missing(section)}."
    if not (section.tables or section.figures):
        yield circumstances(section.evidence)


def _open(section: Section) -> Iterator[str]:
    """List all claims that were not measured in one item."""
    if section.open:
        yield f"- **{Verdict.OPEN.value}** ({len(section.open)}): {' '.join(check.claim for check in section.open)}"


def _missing(section: Section) -> str:
    seeds: dict[str, list[str]] = {}
    for place in section.evidence.missing:
        seeds.setdefault(", ".join(place.labels.values()), []).append(str(place.seed))
    return "; ".join(f"{name}, seed{'s' * (len(of) > 1)} {', '.join(of)}" for name, of in seeds.items())
