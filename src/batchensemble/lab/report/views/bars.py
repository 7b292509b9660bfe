"""Bars: one number per method, and its spread."""

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

HOW = "Bars are means, their whiskers one sample standard deviation over seeds, rings the paper's numbers."
Bars = dict[str, Summary | None]


def bars(
    *metrics: str | Quantity, rows: str = "method", name: str = "bars", title: str = "", log: bool = False
) -> View:
    """A bar for every method, a panel per metric and data set; a run that is missing leaves its place and says so.

    Args:
        metrics: by name, or as a `Quantity` of your own.
        rows: the label that makes bars.
        name: of its files.
        title: what it shows; the metrics' names by default.
        log: whether the axis is logarithmic.
    """
    shown = tuple(map(quantity, metrics))

    def view(evidence: Evidence) -> Figure:
        names = evidence.labels(rows)
        found = [
            (place, part, each, {one: part.summary(each.metric, **{rows: one}) for one in names})
            for place, part in evidence.apart(rows).items()
            for each in shown
        ]
        if not any(summary for *_, heights in found for summary in heights.values()):
            raise NotMeasured(f"no run has {' or '.join(each.name for each in shown)}")

        def draw(canvas: "Canvas") -> None:
            axes = grid(canvas, len(found), across=len(shown), sharey=True)
            for panel, (place, part, each, heights) in zip(axes, found, strict=True):
                _panel(panel, heights, each, log)
                _rings(panel, part, names, each, rows)
                panel.set_title(place)
            axes[0].set_yticks(range(len(names)), names)
            axes[0].invert_yaxis()

        alt = f"Bars of {', '.join(each.name for each in shown)} for {', '.join(names)}."
        heading = title or sentence(each.name for each in shown)
        size = (max(WIDTH, 1.4 + 2.1 * len(shown)), (0.9 + 0.36 * len(names)) * rows_of(len(found), len(shown)))
        return Figure(name, heading, f"{HOW} {circumstances(evidence)}", alt, draw, size)

    return view


def _panel(panel: "Axes", heights: Bars, shown: Quantity, log: bool) -> None:
    for place, (name, colour) in enumerate(colours(heights).items()):
        summary = heights[name]
        if summary is None:
            where = panel.get_yaxis_transform()
            panel.text(0.02, place - 0.16, "missing", transform=where, va="bottom", color=MUTED, fontsize=8)
            continue
        spread = shown.shown(summary.spread) if summary.spread else None
        panel.barh(place, shown.shown(summary.mean), 0.66, color=colour, xerr=spread, ecolor=INK, capsize=2)
        end = (shown.shown(summary.mean) + (spread or 0), place)
        panel.annotate(shown.text(summary.mean), end, (8, 0), textcoords="offset points", va="center", fontsize=8)
    panel.set(xlabel=shown.heading)
    panel.margins(x=0.22)
    if log:
        logarithmic(panel, "x")
    panel.grid(visible=False, axis="y")
    panel.tick_params(axis="y", length=0)


def _rings(panel: "Axes", evidence: Evidence, names: tuple[str, ...], shown: Quantity, rows: str) -> None:
    for place, name in enumerate(names):
        for number in evidence.paper(shown.metric, **{rows: name}):
            panel.plot(shown.shown(number.value), place, "o", fillstyle="none", color=INK, markersize=9, zorder=4)
