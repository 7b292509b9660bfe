"""Curves over steps, tasks, epochs or time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import Quantity, quantity, sentence
from batchensemble.lab.report.style import WIDTH
from batchensemble.lab.report.views.line_styles import line_styles
from batchensemble.lab.report.views.lines import (
    FAR,
    Band,
    Curve,
    band_words,
    draw_background,
    draw_curves,
    dress,
    far_apart,
    name_ends,
    spread_out,
)
from batchensemble.lab.report.views.panels import grid, legend, rows_of
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Curves = Mapping[str, Curve]
Log = Sequence[Mapping[str, Any]]
"""A training's log: a mapping per epoch, as in its JSON lines."""
Series = tuple[Sequence[float], Sequence[float | None]]
"""Positions on the axis, and the values measured there."""
LOGARITHMIC = f"Panels whose curves end more than {FAR:g} times apart have a logarithmic axis."


@dataclass(frozen=True)
class _Content:
    """What one panel shows: a metric on one data set, by method."""

    title: str
    shown: Quantity
    curves: Curves


@dataclass(frozen=True)
class _Look:
    """How all panels are drawn; see `over_steps`."""

    xlabel: str
    band: Band = "deviation"
    log: bool = False
    highlight: Sequence[str] = ()

    def highlighted(self, curves: Curves) -> Curves:
        """The curves to draw in colour."""
        return {name: curve for name, curve in curves.items() if not self.highlight or name in self.highlight}

    def spreads_out(self, content: _Content) -> bool:
        """Whether a panel's axis is logarithmic since its curves end far apart."""
        return not self.log and content.shown.better == "lower" and far_apart(content.curves.values())


def over_steps(
    metric: str | Quantity,
    *,
    x: str | None = None,
    xlabel: str = "step",
    aligned: bool = False,
    band: Band = "deviation",
    log: bool = False,
    highlight: Sequence[str] = (),
    name: str = "curves",
    title: str = "",
) -> View:
    """Draw a curve with a band for every method, from a list in the records; a panel for every problem or data set.

    Args:
        metric: a list of numbers, one per step; or a list of such lists, one per trial.
        x: another list, of positions on the axis; by default 1, 2, 3, ...
        xlabel: what the axis counts.
        aligned: match points by index instead of by position on the axis, and average the positions: seeds do not take
            exactly the same time.
        band: one standard `deviation` or one standard `error` over seeds and trials.
        log: whether both axes are logarithmic.
        highlight: the curves to draw in colour if there are too many for all; the others are grey, named at their ends.
        name: name of its files.
        title: what it shows; the name of the metric by default.
    """
    shown = quantity(metric)
    look = _Look(xlabel, band, log, highlight)

    def view(evidence: Evidence) -> Figure:
        parts = evidence.apart("method").items()
        found = [_Content(place, shown, _curves(part, shown.metric, x, aligned)) for place, part in parts]
        return _figure(evidence, found, look, name, title or sentence([shown.name]))

    return view


def training_curves(*metrics: str | Quantity) -> View:
    """Draw a panel per logged metric and per data set, over epochs, with a band over seeds.

    Reads `log` of the records: a list of logs, one for every training.
    """
    shown = tuple(map(quantity, metrics))

    def view(evidence: Evidence) -> Figure:
        found = [
            _Content(", ".join(filter(None, (place, f"training {each.name}"))), each, _logged(part, each.metric))
            for place, part in evidence.apart("method").items()
            for each in shown
        ]
        return _figure(evidence, found, _Look("epoch"), "training", "Training")

    return view


def _figure(evidence: Evidence, found: Sequence[_Content], look: _Look, name: str, title: str) -> Figure:
    drawn = [content for content in found if content.curves]
    measured = dict.fromkeys(content.shown.name for content in drawn or found)
    if not drawn:
        raise NotMeasured(f"no run has {' or '.join(measured)} by {look.xlabel}")
    methods = dict.fromkeys(method for content in drawn for method in content.curves)
    alt = f"{sentence(measured)} against {look.xlabel} for {'; '.join(methods)}."
    ends = LOGARITHMIC if any(map(look.spreads_out, drawn)) else ""
    how = band_words((curve for content in drawn for curve in content.curves.values()), look.band)
    caption = " ".join(filter(None, (ends, how, circumstances(evidence))))
    size = (WIDTH * (1.25 if look.highlight else 1), 0.7 + 2.6 * rows_of(len(drawn)))
    return Figure(name, title, caption, alt, partial(_draw, drawn=drawn, look=look), size)


def _draw(canvas: "Canvas", drawn: Sequence[_Content], look: _Look) -> None:
    highlighted = [look.highlighted(content.curves) for content in drawn]
    axes, styles = grid(canvas, len(drawn)), line_styles(highlighted)
    for panel, content, coloured in zip(axes, drawn, highlighted, strict=True):
        grey = {name: curve for name, curve in content.curves.items() if name not in coloured}
        factor = content.shown.factor
        draw_background(panel, grey, factor)
        draw_curves(panel, coloured, styles, band=look.band, factor=factor)
        dress(panel, content.shown.heading, look.xlabel, log=look.log)
        if look.spreads_out(content):
            spread_out(panel, content.curves.values(), factor)
        name_ends(panel, grey, factor)
        panel.set_title(content.title)
    legend(canvas, axes)


def _curves(part: Evidence, metric: str, x: str | None, aligned: bool) -> Curves:
    """The curves that have points, by name."""
    series = {name: list(_series(own, metric, x)) for name, own in part.by("method").items()}
    found = {name: Curve.over(_aligned(several) if aligned else several) for name, several in series.items()}
    return {name: curve for name, curve in found.items() if curve.y.size}


def _logged(part: Evidence, metric: str) -> Curves:
    """The curves that have points, by method, from the logs of all trainings."""
    found = {
        method: Curve.over(_column(log, metric) for _, logs in own.with_metric("log") for log in logs)
        for method, own in part.by("method").items()
    }
    return {method: curve for method, curve in found.items() if curve.y.size}


def _aligned(several: Sequence[Series]) -> list[Series]:
    """Move curves to the mean of their positions, up to the end of the shortest."""
    places = [sum(column) / len(several) for column in zip(*(x for x, _ in several), strict=False)]
    return [(places, values[: len(places)]) for _, values in several]


def _series(part: Evidence, metric: str, x: str | None) -> Iterator[Series]:
    """The curve of every seed and every trial."""
    for result, values in part.with_metric(metric):
        if x and x not in result.record.metrics:  # records of a shared machine have no times
            continue
        for series in values if values and isinstance(values[0], list) else [values]:
            yield (result.record.metrics[x] if x else range(1, len(series) + 1)), series


def _column(log: Log, metric: str) -> tuple[list[float], list[float | None]]:
    kept = [line for line in log if metric in line]
    return [line["epoch"] + 1 for line in kept], [line[metric] for line in kept]
