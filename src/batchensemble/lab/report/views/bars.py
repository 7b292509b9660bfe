"""Bar charts: one number per method, and its spread."""

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
Bars = dict[str, Summary | None]


def bars(*metrics: str | Quantity, title: str = "", log: bool = False) -> View:
    """Draw a bar for every method and a panel per metric and data set with results; missing runs are marked.

    Args:
        metrics: names of metrics, or `Quantity` objects for others.
        title: what it shows; the names of the metrics by default.
        log: whether the axis is logarithmic.
    """
    shown = tuple(map(quantity, metrics))

    def view(evidence: Evidence) -> Figure:
        names = evidence.labels("method")
        parts = {place: part for place, part in evidence.apart("method").items() if part.results}
        kept = [each for each in shown if any(any(_heights(part, each, names).values()) for part in parts.values())]
        if not kept:
            raise NotMeasured(f"no run has {' or '.join(each.name for each in shown)}")
        found = [(place, part, each, _heights(part, each, names)) for place, part in parts.items() for each in kept]

        def draw(canvas: "Canvas") -> None:
            axes = grid(canvas, len(found), across=len(kept), sharey=True)
            for panel, (place, part, each, heights) in zip(axes, found, strict=True):
                _panel(panel, heights, each, log)
                _rings(panel, _published(part, names, each))
                panel.set_title(place)
            axes[0].set_yticks(range(len(names)), names)
            axes[0].set_ylim(len(names) - 0.5, -0.5)  # even if the last bars are missing

        alt = f"Bars of {', '.join(each.name for each in kept)} for {'; '.join(names)}."
        heading = title or sentence(each.name for each in kept)
        size = (max(WIDTH, 1.4 + 2.1 * len(kept)), (0.9 + 0.36 * len(names)) * rows_of(len(found), len(kept)))
        several = any(summary and summary.count > 1 for *_, heights in found for summary in heights.values())
        rings = any(_published(part, names, each) for _, part, each, _ in found)
        how = f"{HOW if several else ALONE}{f' {RINGS}' * rings}"
        return Figure("bars", heading, f"{how} {circumstances(evidence)}", alt, draw, size)

    return view


def _heights(part: Evidence, shown: Quantity, names: tuple[str, ...]) -> Bars:
    return {name: part.summary(shown.metric, method=name) for name in names}


def _panel(panel: "Axes", heights: Bars, shown: Quantity, log: bool) -> None:
    for place, (name, colour) in enumerate(colours(heights).items()):
        summary = heights[name]
        if summary is None:
            where = panel.get_yaxis_transform()
            panel.text(0.02, place, "missing", transform=where, va="center", color=MUTED, fontsize=8)
            continue
        spread = shown.shown(summary.spread) if summary.spread else None
        panel.barh(place, shown.shown(summary.mean), 2 * EDGE, color=colour, xerr=spread, ecolor=INK, capsize=2)
        end = (shown.shown(summary.mean) + (spread or 0), place)
        panel.annotate(shown.text(summary.mean), end, (8, 0), textcoords="offset points", va="center", fontsize=8)
    panel.set(xlabel=shown.heading)
    panel.margins(x=0.22)
    if log:
        logarithmic(panel, "x")
        panel.set_xlabel(f"{shown.heading} (log)")
    panel.grid(visible=False, axis="y")
    panel.tick_params(axis="y", length=0)


def _published(part: Evidence, names: tuple[str, ...], shown: Quantity) -> list[tuple[float, int]]:
    """The paper's numbers and the bars they belong to."""
    if not part.comparable:
        return []
    return [
        (shown.shown(number.value), place)
        for place, name in enumerate(names)
        for number in part.paper(shown.metric, method=name)
    ]


def _rings(panel: "Axes", published: list[tuple[float, int]]) -> None:
    """Draw rings on the lower edges of bars, where they cover no number."""
    for value, place in published:
        panel.plot(value, place + EDGE, "o", fillstyle="none", color=INK, markersize=7, zorder=4)
