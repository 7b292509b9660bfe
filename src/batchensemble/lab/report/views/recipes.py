"""All recipes in one figure: how strong members are alone, how much they differ, and what that is worth together."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.style import BLUE, GREEN, GREY, GROUND, INK, MUTED, WIDTH
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

LINES = 6
RADII = (10.0, 16.0, 23.0, 31.0)  # in points, from a mark to its number
LETTERS = np.array([11.0, 9.0])  # in points, the room a number needs
HOW = (
    "Each number is a recipe, listed beside the plot with its ensemble accuracy, best first; the star is the naive "
    "ensemble, squares are single networks."
)
PLANE = (
    "Dashed lines of equal ensemble accuracy are those of the plane fitted to these recipes by least squares, whose "
    "residuals have a standard deviation of {rest:.2f} points."
)


@dataclass(frozen=True)
class _Recipe:
    """A recipe's results in percent, averaged over seeds."""

    name: str
    members: float
    disagreement: float
    ensemble: float
    naive: bool


def recipes(*, title: str = "Recipes: strong members that differ") -> View:
    """Draw members' accuracy against their disagreement, with lines of equal ensemble accuracy.

    Args:
        title: what it shows.

    Reads `member_accuracy`, `disagreement` and `accuracy` of the records.
    """

    def view(evidence: Evidence) -> Figure:
        found = [made for name, part in evidence.by("recipe").items() if (made := _recipe(part, name))]
        if not found:
            raise NotMeasured("no recipe has been measured")
        found.sort(key=lambda one: -one.ensemble)
        plane = _plane(found)
        how = f"{HOW} {PLANE.format(rest=_rest(found, plane))}" if plane is not None else HOW
        alt = f"{len(found)} recipes: members' accuracy against disagreement."
        size = (WIDTH * 1.3, max(4.0, 0.8 + 0.21 * len(found)))
        draw = partial(_draw, drawn=found, plane=plane)
        return Figure("recipes", title, f"{how} {circumstances(evidence)}", alt, draw, size)

    return view


def _draw(canvas: "Canvas", drawn: list[_Recipe], plane: NDArray[np.float64] | None) -> None:
    panel, key = canvas.subplots(1, 2, width_ratios=(3, 2))
    _points(panel, drawn)
    if plane is not None:
        _equal(panel, drawn, plane)
    _key(key, drawn)


def _recipe(part: Evidence, name: str) -> _Recipe | None:
    members, apart, ensemble = map(part.summary, ("member_accuracy", "disagreement", "accuracy"))
    if not (members and apart and ensemble):
        return None
    percent = (100 * members.mean, 100 * apart.mean, 100 * ensemble.mean)
    return _Recipe(name, *percent, "naive" in name.lower())


def _plane(found: list[_Recipe]) -> NDArray[np.float64] | None:
    """Fit `ensemble = a + b members + c disagreement` by least squares; needs four recipes, not on one line."""
    design, ensemble = _design(found)
    if len(found) < 4 or np.linalg.matrix_rank(design) < 3:
        return None
    solved = np.asarray(np.linalg.lstsq(design, ensemble, rcond=None)[0], dtype=np.float64)
    return solved if solved[1] else None


def _design(found: list[_Recipe]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    design = np.array([[1.0, one.members, one.disagreement] for one in found])
    return design, np.array([one.ensemble for one in found])


def _rest(found: list[_Recipe], plane: NDArray[np.float64]) -> float:
    design, ensemble = _design(found)
    return float(np.std(ensemble - design @ plane))


def _points(panel: "Axes", found: list[_Recipe]) -> None:
    """Draw a small mark for every recipe, with its number beside it where there is room."""
    for one in found:
        panel.scatter(one.disagreement, one.members, edgecolor=GROUND, **_mark(one))
    panel.margins(0.08)
    panel.set_xlim(left=max(panel.get_xlim()[0], -0.04 * panel.get_xlim()[1]))  # disagreement is never negative
    panel.set_ylim(panel.get_ylim())
    at = panel.transLimits.transform([(one.disagreement, one.members) for one in found]) * _size(panel)
    for number, (one, place) in enumerate(zip(found, label_places(at), strict=True), start=1):
        panel.annotate(
            str(number),
            (one.disagreement, one.members),
            tuple(place - at[number - 1]),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            fontweight="bold" if one.naive else "normal",
            zorder=5,
            bbox={"facecolor": GROUND, "edgecolor": "none", "pad": 0.4},  # no line crosses a number
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.5, "shrinkA": 4, "shrinkB": 2},
        )
    panel.set(xlabel="disagreement between members (%)", ylabel="members' mean accuracy (%)")


def _size(panel: "Axes") -> NDArray[np.float64]:
    """The approximate width and height of the panel in points, before text is laid out."""
    canvas = panel.get_figure(root=True)
    if canvas is None:
        raise ValueError("expected a panel of a figure")
    return 72 * np.asarray(canvas.get_size_inches()) * (0.54, 0.85)


def _mark(one: _Recipe) -> dict[str, Any]:
    if one.naive:
        return {"marker": "*", "s": 230, "color": GREEN, "zorder": 4}
    alone = one.disagreement == 0
    return {"marker": "s" if alone else "o", "s": 34, "color": GREY if alone else BLUE, "zorder": 3}


def label_places(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Place a label near every point `(N, 2)`, as close as possible without covering a point or another label.

    Examples:
        >>> places = label_places(np.array([[0.0, 0.0], [100.0, 0.0]]))
        >>> np.linalg.norm(places - [[0, 0], [100, 0]], axis=1).round().tolist()
        [10.0, 10.0]
    """
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False) + np.pi / 4
    around = np.stack([np.cos(angles), np.sin(angles)], 1)
    offsets = np.concatenate([radius * around for radius in RADII])  # near ones first
    taken = list(points)
    places = []
    for point in points:
        free = [_distance(point + offset, taken) for offset in offsets]
        best = next((place for place, room in enumerate(free) if room >= 1), int(np.argmax(free)))
        places.append(point + offsets[best])
        taken.append(places[-1])
    return np.array(places)


def _distance(place: NDArray[np.float64], taken: list[NDArray[np.float64]]) -> float:
    """The distance to the nearest taken place, in labels: 1 is room enough."""
    return float(min(np.linalg.norm((place - other) / LETTERS) for other in taken))


def _equal(panel: "Axes", found: list[_Recipe], plane: NDArray[np.float64]) -> None:
    """Draw lines of equal ensemble accuracy, labelled at their right ends."""
    (left, right), (low, high) = panel.get_xlim(), panel.get_ylim()
    across = np.array([left, right])
    accuracies = [one.ensemble for one in found]
    for level in _levels(min(accuracies), max(accuracies)):
        line = (level - plane[0] - plane[2] * across) / plane[1]
        panel.plot(across, line, "--", color=MUTED, linewidth=0.8, zorder=1)
        if low < line[1] < high:
            panel.annotate(f"{level:g}", (right, line[1]), (3, 0), textcoords="offset points", va="center", fontsize=8)
    panel.set(xlim=(left, right), ylim=(low, high))


def _levels(low: float, high: float) -> NDArray[np.float64]:
    """Round accuracies between the worst and the best recipe."""
    step = next((step for step in (0.1, 0.25, 0.5, 1.0, 2.0, 5.0) if (high - low) / step <= LINES), 10.0)
    return np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step


def _key(panel: "Axes", found: list[_Recipe]) -> None:
    panel.set_axis_off()
    panel.text(1, 1, "ensemble (%)", ha="right", va="bottom", fontsize=8, color=MUTED, transform=panel.transAxes)
    gap = 1 / max(len(found), 12)
    for number, one in enumerate(found, start=1):
        weight = "bold" if one.naive else "normal"
        text = {"va": "top", "fontsize": 8, "color": INK, "transform": panel.transAxes, "fontweight": weight}
        height = 1 - gap * (number - 0.6)
        panel.text(0.07, height, str(number), ha="right", **text)  # type: ignore[arg-type]
        panel.text(0.1, height, one.name, **text)  # type: ignore[arg-type]
        panel.text(1, height, f"{one.ensemble:.2f}", ha="right", **text)  # type: ignore[arg-type]
