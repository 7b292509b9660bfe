"""Lines with bands: the mean over seeds, and how far they spread."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.report.style import MUTED
from batchensemble.lab.report.views.panels import logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LineStyle = Mapping[str, Any]
"""A line's colour, marker and dash, as matplotlib's keywords."""
Band = Literal["deviation", "error"]
BANDS: Mapping[Band, str] = {
    "deviation": "Lines are means; bands are one sample standard deviation over seeds.",
    "error": "Lines are means; bands are one standard error over trials.",
}

GAP = 0.065  # between names, as a share of a panel's height
FAR = 5.0
"""If lower is better and curves end further apart than this factor, their axis is logarithmic."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve per seed over the same positions: `x (points,)`, `y (seeds, points)`, NaN where there is no value."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]

    @classmethod
    def over(cls, curves: Iterable[tuple[Sequence[float], Sequence[float | None]]]) -> "Curve":
        """Join curves that share some of their positions, such as trainings that ended at different steps.

        Examples:
            >>> Curve.over([([1, 2], [0.5, 0.7]), ([1, 2, 3], [0.3, None, 0.9])]).y.tolist()
            [[0.5, 0.7, nan], [0.3, nan, 0.9]]
        """
        curves = list(curves)
        places = sorted({place for x, _ in curves for place in x})
        y = np.full((len(curves), len(places)), np.nan)
        for row, (x, values) in zip(y, curves, strict=True):
            for place, value in zip(x, values, strict=True):
                if value is not None:
                    row[places.index(place)] = value
        return cls(np.asarray(places, dtype=np.float64), y)

    def mean_and_band(self, band: Band) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and half-width of the band at every position; the width of a single seed is zero."""
        there = np.isfinite(self.y)
        count = there.sum(0)
        mean = np.where(there, self.y, 0).sum(0) / np.maximum(count, 1)
        squares = np.where(there, (self.y - mean) ** 2, 0).sum(0)
        width = np.sqrt(squares / np.maximum(count - 1, 1))
        return np.where(count > 0, mean, np.nan), (width / np.sqrt(count.clip(1)) if band == "error" else width)

    def covers(self, other: "Curve", within: float) -> bool:
        """Whether its means are those of another curve, up to `within`."""
        if self.x.shape != other.x.shape or not np.array_equal(self.x, other.x):
            return False
        return np.allclose(self.mean, other.mean, rtol=1e-9, atol=within, equal_nan=True)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean at every position."""
        return self.mean_and_band("deviation")[0]

    @property
    def end(self) -> float:
        """The last mean."""
        return float(self.mean[np.isfinite(self.mean)][-1])


def band_words(curves: Iterable[Curve], band: Band = "deviation") -> str:
    """Explain lines and bands if any curve has several seeds.

    Examples:
        >>> band_words([Curve.over([([1], [0.5])])]), band_words([Curve.over([([1], [0.5])] * 2)])[:15]
        ('', 'Lines are means')
    """
    return BANDS[band] if any(len(curve.y) > 1 for curve in curves) else ""


def draw_curves(
    panel: "Axes",
    curves: Mapping[str, Curve],
    styles: Mapping[str, LineStyle],
    *,
    band: Band = "deviation",
    factor: float = 1.0,
) -> None:
    """Draw every curve with its band.

    Args:
        panel: where to draw.
        curves: curves by name.
        styles: how each looks, by name: the same in all panels of a figure.
        band: what its half-width stands for.
        factor: displayed values over recorded ones.
    """
    faint = 0.18 if len(curves) <= 6 else 0.07
    for name, curve in curves.items():
        mean, width = (factor * values for values in curve.mean_and_band(band))
        panel.plot(curve.x, mean, label=name, zorder=3, **styles[name])
        if np.nanmax(width, initial=0) > 0:
            colour = styles[name]["color"]
            panel.fill_between(curve.x, mean - width, mean + width, color=colour, alpha=faint, linewidth=0)


def draw_background(panel: "Axes", curves: Mapping[str, Curve], factor: float) -> None:
    """Draw curves for comparison: thin, grey, without a legend."""
    for name, curve in curves.items():
        panel.plot(curve.x, factor * curve.mean, color=MUTED, linewidth=0.8, alpha=0.8, label=f"_{name}", zorder=2)


def name_ends(panel: "Axes", curves: Mapping[str, Curve], factor: float) -> None:
    """Write the names of curves at their right ends, moved apart where they would overlap."""
    panel.set_ylim(panel.get_ylim())
    to_share = panel.transScale + panel.transLimits
    ends = {name: float(to_share.transform((curve.x[-1], factor * curve.end))[1]) for name, curve in curves.items()}
    for name, share in moved_apart(ends, GAP).items():
        curve = curves[name]
        panel.annotate(
            name,
            (curve.x[-1], factor * curve.end),
            (1.03, share),
            textcoords="axes fraction",
            fontsize=7,
            color=MUTED,
            va="center",
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 0},
        )


def moved_apart(places: Mapping[str, float], gap: float) -> dict[str, float]:
    """Move positions apart, as little as possible, until each is at least `gap` above the one before.

    Examples:
        >>> moved_apart({"a": 0.5, "b": 0.52, "c": 0.9}, 0.1)
        {'a': 0.46, 'b': 0.56, 'c': 0.9}
    """
    groups: list[list[str]] = []
    middle: list[float] = []
    for name in sorted(places, key=places.__getitem__):
        groups.append([name])
        middle.append(places[name])
        while len(groups) > 1 and middle[-1] - middle[-2] < gap * (len(groups[-1]) + len(groups[-2])) / 2:
            last, centre = groups.pop(), middle.pop()
            middle[-1] = (middle[-1] * len(groups[-1]) + centre * len(last)) / (len(groups[-1]) + len(last))
            groups[-1] += last
    return {
        name: round(centre + gap * (place - (len(group) - 1) / 2), 6)
        for group, centre in zip(groups, middle, strict=True)
        for place, name in enumerate(group)
    }


def dress(panel: "Axes", ylabel: str, xlabel: str, *, log: bool = False) -> None:
    """Label the axes; counts have integer ticks."""
    from matplotlib.ticker import MaxNLocator

    panel.set(xlabel=xlabel, ylabel=textwrap.fill(ylabel, 28))
    if log:
        panel.set(xscale="log", yscale="log", xlabel=f"{xlabel} (log)", ylabel=textwrap.fill(f"{ylabel} (log)", 28))
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, steps=[1, 2, 5, 10]))


def far_apart(curves: Iterable[Curve]) -> bool:
    """Whether the high curves are so far above that the low ones would overlap on a linear axis.

    Examples:
        >>> curves = [Curve.over([([1, 2], [0.0, end])]) for end in (6.0, 100.0)]
        >>> far_apart(curves), far_apart(curves[:1])
        (True, False)
    """
    ends = [curve.end for curve in curves]
    return 0 < FAR * min(ends) < max(ends)


def spread_out(panel: "Axes", curves: Iterable[Curve], factor: float) -> None:
    """Make the axis logarithmic, from a little below the lowest end: cumulative curves start at zero."""
    logarithmic(panel, "y")
    panel.set_ylabel(textwrap.fill(f"{panel.get_ylabel()} (log)", 28))
    panel.set_ylim(bottom=factor * min(curve.end for curve in curves) / FAR)
