"""Bar charts: one number per method, and its spread."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured, Summary
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import Quantity, quantity, sentence
from batchensemble.lab.report.style import INK, MUTED, WIDTH, colours
from batchensemble.lab.report.views.panels import grid, logarithmic, rows_of
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

HOW = "Bars are means; whiskers are one sample standard deviation over seeds."
ALONE = "Bars are single runs."
RINGS = "Rings are the paper's numbers."
EDGE = 0.33  # from the middle of a bar to its edge, as a share of a row
Heights = Mapping[str, Summary | None]


@dataclass(frozen=True)
class _Content:
    """What one panel shows: a metric on one data set, by method; rings are the paper's numbers, and bars' places."""

    title: str
    shown: Quantity
    heights: Heights
    rings: list[tuple[float, int]]


def bars(*metrics: str | Quantity, title: str = "", log: bool = False) -> View:
    """Draw a bar for every method and a panel per metric and data set with results; missing runs are marked.

    Args:
        metrics: names of metrics, or `Quantity` objects for others.
        title: what it shows; the names of the metrics by default.
        log: whether the axis is logarithmic.
    """
    shown = tuple(map(quantity, metrics))

    def view(evidence: Evidence) -> Figure:
        found = _found(evidence, shown)
        if not found:
            raise NotMeasured(f"no run has {' or '.join(each.name for each in shown)}")
        names, kept = evidence.labels("method"), list(dict.fromkeys(content.shown for content in found))
        several = any(bar and bar.count > 1 for content in found for bar in content.heights.values())
        how = f"{HOW if several else ALONE}{f' {RINGS}' * any(content.rings for content in found)}"
        alt = f"Bars of {', '.join(each.name for each in kept)} for {'; '.join(names)}."
        heading = title or sentence(each.name for each in kept)
        size = (max(WIDTH, 1.4 + 2.1 * len(kept)), (0.9 + 0.36 * len(names)) * rows_of(len(found), len(kept)))
        draw = partial(_draw, drawn=found, across=len(kept), log=log)
        return Figure("bars", heading, f"{how} {circumstances(evidence)}", alt, draw, size)

    return view


def _found(evidence: Evidence, shown: Iterable[Quantity]) -> list[_Content]:
    """Bars for every data set with results, and every metric that was measured on any of them."""
    names = evidence.labels("method")
    every = [
        _Content(title, each, _heights(part, each, names), _published(part, each, names))
        for title, part in evidence.apart("method").items()
        if part.results
        for each in shown
    ]
    measured = {content.shown for content in every if any(content.heights.values())}
    return [content for content in every if content.shown in measured]


def _heights(part: Evidence, shown: Quantity, names: Sequence[str]) -> Heights:
    return {name: part.summary(shown.metric, method=name) for name in names}


def _published(part: Evidence, shown: Quantity, names: Sequence[str]) -> list[tuple[float, int]]:
    """The paper's numbers and the bars they belong to."""
    if not part.comparable:
        return []
    return [
        (shown.scaled(number.value), place)
        for place, name in enumerate(names)
        for number in part.paper(shown.metric, method=name)
    ]


def _draw(canvas: "Canvas", drawn: Sequence[_Content], across: int, log: bool) -> None:
    axes = grid(canvas, len(drawn), across=across, sharey=True)
    for panel, content in zip(axes, drawn, strict=True):
        _panel(panel, content.heights, content.shown, log)
        _rings(panel, content.rings)
        panel.set_title(content.title)
    names = list(drawn[0].heights)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)  # even if the last bars are missing


def _panel(panel: "Axes", heights: Heights, shown: Quantity, log: bool) -> None:
    for place, (name, colour) in enumerate(colours(heights).items()):
        summary = heights[name]
        if summary is None:
            where = panel.get_yaxis_transform()
            panel.text(0.02, place, "missing", transform=where, va="center", color=MUTED, fontsize=8)
            continue
        spread = shown.scaled(summary.spread) if summary.spread else None
        panel.barh(place, shown.scaled(summary.mean), 2 * EDGE, color=colour, xerr=spread, ecolor=INK, capsize=2)
        end = (shown.scaled(summary.mean) + (spread or 0), place)
        panel.annotate(shown.text(summary.mean), end, (8, 0), textcoords="offset points", va="center", fontsize=8)
    panel.set(xlabel=shown.heading)
    panel.margins(x=0.22)
    if log:
        logarithmic(panel, "x")
        panel.set_xlabel(f"{shown.heading} (log)")
    panel.grid(visible=False, axis="y")
    panel.tick_params(axis="y", length=0)


def _rings(panel: "Axes", published: Iterable[tuple[float, int]]) -> None:
    """Draw rings on the lower edges of bars, where they cover no number."""
    for value, place in published:
        panel.plot(value, place + EDGE, "o", fillstyle="none", color=INK, markersize=7, zorder=4)
