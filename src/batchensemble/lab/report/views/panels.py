"""Several panels in one figure, with one legend for all of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

SHAPES: tuple[dict[str, Any], ...] = (
    {"ncols": 4},
    {"ncols": 3},
    {"ncols": 2},
    {"ncols": 2, "fontsize": 7.5},
    {"ncols": 1},
)
"""Layouts of a legend, the best first; those that are too wide are skipped."""


def rows_of(count: int, across: int = 2) -> int:
    """The number of rows that `count` panels take."""
    return -(-count // across)


def grid(canvas: "Canvas", count: int, across: int = 2, **options: Any) -> "list[Axes]":
    """Create `count` panels in rows of `across`; `options` go to matplotlib's `subplots`."""
    across = min(across, count)
    axes = list(canvas.subplots(rows_of(count, across), across, squeeze=False, **options).flat)
    for panel in axes[count:]:
        panel.set_axis_off()
    for panel in axes[max(0, count - across) : count]:  # a column may end a row above the others
        panel.tick_params(labelbottom=True)
    return axes[:count]


def legend(canvas: "Canvas", axes: "Iterable[Axes]") -> None:
    """Draw one legend above all panels, in the best layout that fits."""
    entries: dict[str, Artist] = {}
    for panel in axes:
        handles, labels = panel.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    for shape in SHAPES:
        made = canvas.legend(list(entries.values()), list(entries), loc="outside upper left", **shape)
        if shape == SHAPES[-1] or made.get_window_extent().width <= canvas.bbox.width:
            return
        made.remove()


def logarithmic(panel: "Axes", which: Literal["x", "y"]) -> None:
    """Make one axis of a panel logarithmic, with few ticks in plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis = panel.xaxis if which == "x" else panel.yaxis
    panel.set(**{f"{which}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 3), numticks=6))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
