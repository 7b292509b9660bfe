"""All recipes on one picture: how strong members are alone, how much they differ, what that is worth together."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.style import BLUE, GREEN, GROUND, INK, MUTED, WIDTH
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

LINES = 6
HOW = "Each number is a recipe, listed with its ensemble accuracy beside the picture; the star is the naive ensemble."
PLANE = (
    "Lines of equal ensemble accuracy are those of the plane that fits these recipes best (least squares; what it "
    "leaves unexplained has a standard deviation of {rest:.2f} points)."
)


@dataclass(frozen=True)
class _Recipe:
    """Percentages, the mean over seeds."""

    name: str
    members: float
    disagreement: float
    ensemble: float
    naive: bool


def recipes(
    *,
    rows: str = "recipe",
    name: str = "recipes",
    title: str = "Recipes: strong members that differ",
) -> View:
    """Members' accuracy against their disagreement, with lines of equal ensemble accuracy.

    Args:
        rows: the label that names recipes.
        name: of its files.
        title: what it shows.

    Reads `member_accuracy`, `disagreement` and `accuracy` of the records.
    """

    def view(evidence: Evidence) -> Figure:
        found = [made for one in evidence.labels(rows) if (made := _recipe(evidence.where(**{rows: one}), one))]
        if not found:
            raise NotMeasured("no recipe has been measured")
        plane = _plane(found)
        how = f"{HOW} {PLANE.format(rest=_rest(found, plane))}" if plane is not None else HOW

        def draw(canvas: "Canvas") -> None:
            panel, key = canvas.subplots(1, 2, width_ratios=(3, 2))
            _points(panel, found)
            if plane is not None:
                _equal(panel, found, plane)
            _key(key, found)

        alt = f"{len(found)} recipes: members' accuracy against disagreement."
        size = (WIDTH * 1.3, max(4.0, 0.8 + 0.21 * len(found)))
        return Figure(name, title, f"{how} {circumstances(evidence)}", alt, draw, size)

    return view


def _recipe(part: Evidence, name: str) -> _Recipe | None:
    members, apart, ensemble = map(part.summary, ("member_accuracy", "disagreement", "accuracy"))
    if not (members and apart and ensemble):
        return None
    percent = (100 * members.mean, 100 * apart.mean, 100 * ensemble.mean)
    return _Recipe(name, *percent, "naive" in name.lower())


def _plane(found: list[_Recipe]) -> NDArray[np.float64] | None:
    """`ensemble = a + b members + c disagreement`, by least squares; four recipes at least, not on one line."""
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
    for number, one in enumerate(found, start=1):
        colour, marker, size = (GREEN, "*", 420) if one.naive else (BLUE, "o", 150)
        above = 5 if one.naive else 3
        panel.scatter(one.disagreement, one.members, s=size, marker=marker, c=colour, edgecolor=GROUND, zorder=above)
        text = {"ha": "center", "va": "center", "fontsize": 7.5, "color": "#fefefe", "zorder": above + 1}
        panel.text(one.disagreement, one.members, str(number), fontweight="bold", **text)  # type: ignore[arg-type]
    panel.set(xlabel="disagreement between members (%)", ylabel="members' mean accuracy (%)")
    panel.margins(0.12)


def _equal(panel: "Axes", found: list[_Recipe], plane: NDArray[np.float64]) -> None:
    """Lines of equal ensemble accuracy, named at their right ends."""
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
    return np.arange(np.floor(low / step), np.ceil(high / step) + 1) * step


def _key(panel: "Axes", found: list[_Recipe]) -> None:
    panel.set_axis_off()
    panel.text(1, 1, "ensemble (%)", ha="right", va="bottom", fontsize=8, color=MUTED, transform=panel.transAxes)
    gap = 1 / max(len(found), 12)
    best = max(one.ensemble for one in found)
    for number, one in enumerate(found, start=1):
        text = {"va": "top", "fontsize": 8, "color": INK, "transform": panel.transAxes}
        height = 1 - gap * (number - 0.6)
        panel.text(0, height, f"{number}  {one.name}", **text)  # type: ignore[arg-type]
        weight = "bold" if one.ensemble == best else "normal"
        panel.text(1, height, f"{one.ensemble:.2f}", ha="right", fontweight=weight, **text)  # type: ignore[arg-type]
