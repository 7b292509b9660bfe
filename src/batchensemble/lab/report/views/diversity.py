"""Diversity against accuracy, with a point for every member but the first, from which the others differ."""

import textwrap
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import Quantity, quantity, sentence
from batchensemble.lab.report.style import GROUND, MUTED, WIDTH, colours, markers
from batchensemble.lab.report.views.panels import grid, legend, rows_of
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Points = list[tuple[float, float]]
"""Accuracy and diversity of members, in displayed units."""

HOW = (
    "Each point is a member (for dropout, a sample) other than the first: its own accuracy, and its distance from the "
    "first member of the same run."
)


def diversity_against_accuracy(
    metric: str | Quantity = "base_disagreement",
    *,
    panels: str = "share",
    panel_title: str = "{}",
    name: str = "diversity",
) -> View:
    """Draw a panel for each measured value of the label `panels`, with a point per member but the first.

    Args:
        metric: how far members are from the first.
        panels: the label that tells panels apart.
        panel_title: template of a panel's title, with a place for the label's value.
        name: name of its files.

    Reads the lists `member_accuracy` and `metric` of the records, the first member being the base.
    """
    shown = quantity(metric)

    def view(evidence: Evidence) -> Figure:
        found = {
            value: methods
            for value, part in evidence.by(panels).items()
            if any((methods := _methods(part, shown)).values())
        }
        if not found:
            raise NotMeasured(f"no run has both the accuracy of its members and their {shown.name}")

        alt = f"{sentence([shown.name])} against members' accuracy for {', '.join(found)}."
        size = (WIDTH, 0.8 + 2.3 * rows_of(len(found)))
        title = panel_title if len(evidence.labels(panels)) > 1 else ""
        draw = partial(_draw, drawn=found, title=title, ylabel=shown.heading)
        return Figure(name, f"Accuracy and {shown.name}", f"{HOW} {circumstances(evidence)}", alt, draw, size)

    return view


def _draw(canvas: "Canvas", drawn: Mapping[str, Mapping[str, Points]], title: str, ylabel: str) -> None:
    axes = grid(canvas, len(drawn))
    for panel, (value, methods) in zip(axes, drawn.items(), strict=True):
        _panel(panel, methods)
        panel.set_title(title.format(value))
    canvas.supxlabel(quantity("member_accuracy").heading, fontsize=10)
    canvas.supylabel(textwrap.fill(ylabel, 24 * rows_of(len(drawn))), fontsize=10)
    legend(canvas, axes)


def _methods(part: Evidence, shown: Quantity) -> dict[str, Points]:
    """The points of one panel by method; a method without points keeps its colour."""
    return {method: _points(own, shown) for method, own in part.by("method").items()}


def _points(part: Evidence, shown: Quantity) -> Points:
    if differing := part.differing():
        raise ValueError(f"points of different runs must not be mixed: they differ in {', '.join(differing)}")
    pairs = [
        pair
        for result, accuracies in part.with_metric("member_accuracy")
        for pair in list(zip(accuracies, result.record.metrics.get(shown.metric) or (), strict=False))[1:]
    ]
    return [(100 * accuracy, shown.scaled(value)) for accuracy, value in pairs if None not in (accuracy, value)]


def _panel(panel: "Axes", methods: Mapping[str, Points]) -> None:
    marks = markers(methods)
    colour_of = colours(methods)
    for method, points in methods.items():
        if not points:
            continue
        panel.scatter(
            [accuracy for accuracy, _ in points],
            [value for _, value in points],
            s=34,
            marker=marks[method],
            facecolor=colour_of[method],
            edgecolor=GROUND,
            linewidth=0.6,
            label=method,
            zorder=3,
        )
    panel.axhline(0, color=MUTED, linewidth=0.8)  # as near as the first member
    panel.margins(0.12)
    panel.locator_params(nbins=5)
