"""Box plots by severity: what corruption does to accuracy and calibration."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import Quantity, quantity
from batchensemble.lab.report.style import INK, WIDTH, colours
from batchensemble.lab.report.views.panels import grid, legend
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Boxes = dict[int, list[float]]
"""By severity, one number per corruption: the mean over seeds."""
Content = tuple[str, dict[str, Boxes], Quantity]
"""What one panel shows: a heading, the boxes by method, and what they show."""

HOW = (
    "Boxes span the quartiles over the kinds of corruption, with a line at the median and whiskers to the mildest and "
    "the harshest kind; `clean` is the test set itself. Numbers are means over seeds."
)


def by_severity(*metrics: str | Quantity) -> View:
    """Draw boxes over kinds of corruption by severity, with a panel per metric and a colour per method.

    Reads `shift` of the records: a list of `{"corruption", "severity", metric: value, ...}`.
    """
    shown = tuple(map(quantity, metrics))

    def view(evidence: Evidence) -> Figure:
        found = [
            (", ".join(filter(None, (title, one.heading))), boxes, one)
            for title, part in evidence.apart("method").items()
            for one in shown
            if (boxes := _boxes(part, one.metric))
        ]
        if not found:
            raise NotMeasured("no run has been measured under corruption")

        methods = "; ".join(dict.fromkeys(method for _, boxes, _ in found for method in boxes))
        alt = f"Box plots of {' and '.join(one.name for one in shown)} by severity for {methods}."
        size = (WIDTH * 1.2, 0.7 + 2.5 * len(found))
        draw = partial(_draw, drawn=found)
        return Figure("severity", "Under corruption", f"{HOW} {circumstances(evidence)}", alt, draw, size)

    return view


def _draw(canvas: "Canvas", drawn: Sequence[Content]) -> None:
    axes = grid(canvas, len(drawn), across=1, sharex=True)
    for panel, (heading, boxes, shown) in zip(axes, drawn, strict=True):
        _panel(panel, boxes, shown)
        panel.set_ylabel(heading)
    axes[-1].set_xlabel("severity of the corruption")
    legend(canvas, axes)


def _boxes(evidence: Evidence, metric: str) -> dict[str, Boxes]:
    """The boxes of every method that has any."""
    return {method: boxes for method, part in evidence.by("method").items() if (boxes := _means(part, metric))}


def _means(part: Evidence, metric: str) -> Boxes:
    by_kind: dict[tuple[int, str], list[float]] = defaultdict(list)
    for row in (row for _, shift in part.with_metric("shift") for row in shift):
        if row.get(metric) is not None:
            by_kind[row["severity"], row["corruption"]].append(row[metric])
    boxes: Boxes = defaultdict(list)
    for (severity, _), numbers in sorted(by_kind.items()):
        boxes[severity].append(sum(numbers) / len(numbers))
    return boxes


def _panel(panel: "Axes", boxes: dict[str, Boxes], shown: Quantity) -> None:
    width = min(0.8 / len(boxes), 0.3)
    severities = sorted({severity for by_severity in boxes.values() for severity in by_severity})
    for place, (method, colour) in enumerate(colours(boxes).items()):
        aside = (place - (len(boxes) - 1) / 2) * width
        by_place = {severity + aside: [*map(shown.scaled, numbers)] for severity, numbers in boxes[method].items()}
        alone = {x: numbers[0] for x, numbers in by_place.items() if len(numbers) == 1}
        panel.plot(list(alone), list(alone.values()), "D", color=colour, markersize=4)
        _draw_boxes(panel, {x: by_place[x] for x in by_place if x not in alone}, method, colour, 0.82 * width)
    panel.set_xticks(severities, [str(severity) if severity else "clean" for severity in severities])
    panel.set_xlim(severities[0] - 0.5, severities[-1] + 0.5)
    panel.grid(visible=False, axis="x")
    panel.tick_params(axis="x", length=0, color=INK)


def _draw_boxes(panel: "Axes", numbers: dict[float, list[float]], method: str, colour: str, width: float) -> None:
    panel.boxplot(
        list(numbers.values()),
        positions=list(numbers),
        widths=width,
        whis=(0, 100),
        patch_artist=True,
        manage_ticks=False,
        showfliers=False,
        label=method,
        boxprops={"facecolor": colour, "edgecolor": colour, "alpha": 0.85},
        medianprops={"color": INK, "linewidth": 1.4},
        whiskerprops={"color": colour},
        capprops={"color": colour},
    )
