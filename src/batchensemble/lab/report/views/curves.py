"""Curves over steps, tasks, epochs or time."""

from collections.abc import Iterator, Mapping, Sequence
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
Lines = Sequence[Mapping[str, Any]]
"""A training's log: a mapping per epoch, as in its JSON lines."""
Series = tuple[Sequence[float], Sequence[float | None]]
"""Positions on the axis, and the values measured there."""
LOGARITHMIC = f"Panels whose curves end more than {FAR:g} times apart have a logarithmic axis."


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

    def view(evidence: Evidence) -> Figure:
        parts = evidence.apart("method").items()
        found = {panel: (_curves(part, shown.metric, x, aligned), shown) for panel, part in parts}
        words = (name, title or sentence([shown.name]), circumstances(evidence))
        return _figure(found, words, xlabel=xlabel, band=band, log=log, highlight=highlight)

    return view


def training_curves(*metrics: str | Quantity) -> View:
    """Draw a panel per logged metric and per data set, over epochs, with a band over seeds.

    Reads `log` of the records: a list of logs, one for every training.
    """
    shown = tuple(map(quantity, metrics))

    def view(evidence: Evidence) -> Figure:
        found: dict[str, tuple[Curves, Quantity]] = {}
        for place, part in evidence.apart("method").items():
            panels = _log_panels(_logs(part), shown)
            found |= {", ".join(filter(None, (place, f"training {metric}"))): panel for metric, panel in panels.items()}
        return _figure(found, ("training", "Training", circumstances(evidence)), xlabel="epoch")

    return view


def _logs(part: Evidence) -> dict[str, list[Lines]]:
    return {
        method: [log for _, logs in own.with_metric("log") for log in logs] for method, own in part.by("method").items()
    }


def _log_panels(logs: Mapping[str, Sequence[Lines]], shown: Sequence[Quantity]) -> dict[str, tuple[Curves, Quantity]]:
    """The curves that have points, by metric."""
    panels: dict[str, tuple[Curves, Quantity]] = {}
    for one in shown:
        curves = {method: Curve.over(_column(log, one.metric) for log in several) for method, several in logs.items()}
        panels[one.name] = ({method: curve for method, curve in curves.items() if curve.y.size}, one)
    return panels


def _figure(
    found: Mapping[str, tuple[Curves, Quantity]],
    words: tuple[str, str, str],
    *,
    xlabel: str,
    band: Band = "deviation",
    log: bool = False,
    highlight: Sequence[str] = (),
) -> Figure:
    """Build a figure from panels by title; `words` are its name, its title and the end of its caption."""
    drawn = {title: panel for title, panel in found.items() if panel[0]}
    measured = dict.fromkeys(shown.name for _, shown in (drawn or found).values())
    if not drawn:
        raise NotMeasured(f"no run has {' or '.join(measured)} by {xlabel}")
    apart = () if log else [title for title, (curves, shown) in drawn.items() if _spread(curves, shown)]

    coloured = {
        title: {name: curve for name, curve in curves.items() if not highlight or name in highlight}
        for title, (curves, _) in drawn.items()
    }

    def draw(canvas: "Canvas") -> None:
        axes, styles = grid(canvas, len(drawn)), line_styles(list(coloured.values()))
        for panel, (title, (curves, shown)) in zip(axes, drawn.items(), strict=True):
            grey = {name: curve for name, curve in curves.items() if name not in coloured[title]}
            draw_background(panel, grey, shown.factor)
            draw_curves(panel, coloured[title], styles, band=band, factor=shown.factor)
            dress(panel, shown.heading, xlabel, log=log)
            if title in apart:
                spread_out(panel, curves.values(), shown.factor)
            name_ends(panel, grey, shown.factor)
            panel.set_title(title)
        legend(canvas, axes)

    name, title, where = words
    names = dict.fromkeys(name for curves, _ in drawn.values() for name in curves)
    alt = f"{sentence(measured)} against {xlabel} for {'; '.join(names)}."
    how = band_words((curve for curves, _ in drawn.values() for curve in curves.values()), band)
    caption = " ".join(filter(None, (LOGARITHMIC if apart else "", how, where)))
    size = (WIDTH * (1.25 if highlight else 1), 0.7 + 2.6 * rows_of(len(drawn)))
    return Figure(name, title, caption, alt, draw, size)


def _spread(curves: Curves, shown: Quantity) -> bool:
    return shown.better == "lower" and far_apart(curves.values())


def _curves(part: Evidence, metric: str, x: str | None, aligned: bool) -> Curves:
    """The curves that have points, by name."""
    series = {name: list(_series(own, metric, x)) for name, own in part.by("method").items()}
    found = {name: Curve.over(_aligned(several) if aligned else several) for name, several in series.items()}
    return {name: curve for name, curve in found.items() if curve.y.size}


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


def _column(log: Lines, metric: str) -> tuple[list[float], list[float | None]]:
    kept = [line for line in log if metric in line]
    return [line["epoch"] + 1 for line in kept], [line[metric] for line in kept]
