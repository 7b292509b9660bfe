"""The cost of an ensemble against its size, relative to one network."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import sentence
from batchensemble.lab.report.style import INK
from batchensemble.lab.report.views.line_styles import line_styles
from batchensemble.lab.report.views.lines import Curve, draw_curves
from batchensemble.lab.report.views.panels import grid, legend, rows_of
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PANELS = {"relative_seconds": "test time", "relative_memory": "memory", "relative_parameters": "parameters"}
HOW = (
    "Relative to one network on the same images, on logarithmic axes; the dotted line is the cost of as many separate "
    "networks."
)
RINGS = "Rings: the paper's claim for four members."
CLAIMED = 4
Curves = Mapping[str, Curve]
Content = tuple[str, str, Curves]
"""What one panel shows: a heading, a metric, and its curves by kind of ensemble."""


def cost_by_size(claimed: Mapping[str, float]) -> View:
    """Draw test time, memory (on a GPU) and parameters against the ensemble's size.

    Args:
        claimed: the cost of four members according to the paper, relative to one network, by metric
            (`relative_seconds`, `relative_memory`, `relative_parameters`); drawn only at the paper's scale.

    Reads `cost` of the records: a list of `{"kind", "members", "relative_seconds", ...}`.
    """

    def view(evidence: Evidence) -> Figure:
        found = [
            (", ".join(filter(None, (network, words))), metric, curves)
            for network, part in evidence.apart().items()
            for metric, words in PANELS.items()
            if (curves := _curves(part, metric))
        ]
        if not found:
            raise NotMeasured("no cost has been measured")
        across = len({metric for _, metric, _ in found})
        how, rings = (f"{HOW} {RINGS}", claimed) if evidence.comparable else (HOW, {})
        alt = f"{sentence(heading for heading, *_ in found)} against the number of members."
        size = (2.6 * across + 0.6, 0.9 + 2.7 * rows_of(len(found), across))
        draw = partial(_draw, drawn=found, across=across, rings=rings)
        return Figure("cost", "Cost against ensemble size", f"{how} {circumstances(evidence)}", alt, draw, size)

    return view


def _draw(canvas: "Canvas", drawn: Sequence[Content], across: int, rings: Mapping[str, float]) -> None:
    axes, styles = grid(canvas, len(drawn), across), line_styles([curves for *_, curves in drawn])
    for panel, (heading, metric, curves) in zip(axes, drawn, strict=True):
        draw_curves(panel, curves, styles)
        _reference(panel, curves, rings.get(metric))
        panel.set_title(heading)
    canvas.supylabel("relative to one network (log)", fontsize=10)
    canvas.supxlabel("members (log)", fontsize=10)
    legend(canvas, axes)


def _curves(evidence: Evidence, metric: str) -> Curves:
    """A curve over members for every run, by kind of ensemble."""
    kinds = dict.fromkeys(row["kind"] for rows in _rows(evidence) for row in rows if row.get(metric))
    return {
        kind: Curve.over(
            ([row["members"] for row in kept], [row[metric] for row in kept])
            for rows in _rows(evidence)
            if (kept := [row for row in rows if row["kind"] == kind and row.get(metric)])
        )
        for kind in kinds
    }


def _rows(evidence: Evidence) -> Iterator[list[dict[str, Any]]]:
    yield from (rows for _, rows in evidence.with_metric("cost"))


def _reference(panel: "Axes", curves: Curves, claim: float | None) -> None:
    """Draw the line of as many networks and the paper's ring, and set axes in powers of two."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, StrMethodFormatter

    sizes = sorted({size for curve in curves.values() for size in curve.x})
    panel.plot(sizes, sizes, ":", color=INK, linewidth=1, zorder=1, label="separate networks")
    if claim is not None:
        panel.plot(CLAIMED, claim, "o", fillstyle="none", color=INK, markersize=10, label="the paper's claim", zorder=4)
    panel.set(xscale="log", yscale="log")
    panel.xaxis.set_major_locator(FixedLocator(sizes))
    panel.yaxis.set_major_locator(LogLocator(2))  # costs may exceed sizes
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
