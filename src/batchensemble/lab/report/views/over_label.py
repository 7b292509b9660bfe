"""Curves over a numeric label: the share of the data, the size of the ensemble, the number of tasks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured, number_of
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import Quantity, quantity, sentence
from batchensemble.lab.report.style import INK, WIDTH
from batchensemble.lab.report.views.line_styles import line_styles
from batchensemble.lab.report.views.lines import Curve, band_words, draw_curves, dress
from batchensemble.lab.report.views.panels import grid, legend, rows_of
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True)
class _Content:
    """What one panel shows: a metric on one data set, by method; rings are the paper's numbers."""

    title: str
    shown: Quantity
    curves: Mapping[str, Curve]
    rings: Sequence[tuple[float, float]]


def over_label(label: str, *metrics: str | Quantity, xlabel: str = "", title: str = "") -> View:
    """Draw curves over a numeric label (`"4"`, `"20 %"`), a panel per metric and data set; the paper's as rings.

    Below the paper's scale there are no rings, since they belong to another setting.
    """
    shown = tuple(map(quantity, metrics))
    names = [each.name for each in shown]

    def view(evidence: Evidence) -> Figure:
        found = [
            _Content(place, each, curves, _published(part, label, each))
            for place, part in evidence.apart("method", label).items()
            for each in shown
            if _several((curves := _curves(part, label, each)).values())
        ]
        if not found:
            raise NotMeasured(f"no method has {' or '.join(names)} at more than one {label}")
        alt = f"{sentence(names)} against {xlabel or label}."
        how = band_words(curve for content in found for curve in content.curves.values())
        caption = f"{how} {circumstances(evidence)}".lstrip()
        size = (max(WIDTH, 3.2 * len(shown)), 0.7 + 2.7 * rows_of(len(found), len(shown)))
        places = [place for text in evidence.labels(label) if (place := first_number(text)) is not None]
        draw = partial(_draw, drawn=found, across=len(shown), xlabel=xlabel or label, places=places)
        return Figure("curves", title or sentence(names), caption, alt, draw, size)

    return view


def _draw(canvas: "Canvas", drawn: Sequence[_Content], across: int, xlabel: str, places: Sequence[float]) -> None:
    axes = grid(canvas, len(drawn), across=across)
    styles = line_styles([content.curves for content in drawn])
    for panel, content in zip(axes, drawn, strict=True):
        draw_curves(panel, content.curves, styles, factor=content.shown.factor)
        _rings(panel, content.rings)
        dress(panel, content.shown.heading, xlabel)
        _reach_every_place(panel, places)
        panel.set_title(content.title)
    legend(canvas, axes)


def _several(curves: Iterable[Curve]) -> bool:
    """Whether there is a line to draw; a single point belongs in a table."""
    return any(len(curve.x) > 1 for curve in curves)


def _curves(evidence: Evidence, label: str, shown: Quantity) -> dict[str, Curve]:
    """The metric over the label by method, a curve per seed, for methods that have points."""
    found = {name: _curve(part, label, shown) for name, part in evidence.by("method").items()}
    return {name: curve for name, curve in found.items() if curve.y.size}


def _curve(part: Evidence, label: str, shown: Quantity) -> Curve:
    seeds: dict[int, dict[float, float]] = {}
    for result in part.results:
        number, place = number_of(result.record, shown.metric), first_number(result.labels.get(label, ""))
        if number is not None and place is not None:
            seeds.setdefault(result.record.run.seed, {})[place] = number
    return Curve.over((list(points), list(points.values())) for points in seeds.values())


def _published(part: Evidence, label: str, shown: Quantity) -> list[tuple[float, float]]:
    """The paper's numbers and where they belong, the label's number first."""
    if not part.comparable:
        return []
    return [
        (place, shown.scaled(number.value))
        for number in part.paper(shown.metric)
        if (place := first_number(number.labels.get(label, ""))) is not None
    ]


def _reach_every_place(panel: "Axes", places: Iterable[float]) -> None:
    """Make the axis span all that was asked for; a single point would stretch it to shares beyond 100 %."""
    panel.update_datalim([(place, 0.0) for place in places], updatey=False)
    panel.autoscale_view()


def _rings(panel: "Axes", published: Sequence[tuple[float, float]]) -> None:
    if published:
        x, y = zip(*published, strict=True)
        panel.plot(x, y, "o", fillstyle="none", color=INK, markersize=9, label="the paper's numbers", zorder=4)


def first_number(text: str) -> float | None:
    """The first number in a label.

    Examples:
        >>> first_number("20 %"), first_number("all")
        (20.0, None)
    """
    found = re.search(r"\d+(\.\d+)?", text)
    return float(found[0]) if found else None
