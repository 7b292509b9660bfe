"""Several panels in one figure, and one legend for all of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

LONG = 16  # letters of a name from which on a legend has two columns instead of four


def rows_of(count: int, across: int = 2) -> int:
    """How many rows of panels there are."""
    return -(-count // across)


def grid(canvas: "Canvas", count: int, across: int = 2, **options: Any) -> "list[Axes]":
    """`count` panels in rows of `across`; `options` as matplotlib's `subplots` takes them."""
    across = min(across, count)
    axes = list(canvas.subplots(rows_of(count, across), across, squeeze=False, **options).flat)
    for panel in axes[count:]:
        panel.set_axis_off()
    return axes[:count]


def legend(canvas: "Canvas", axes: "Iterable[Axes]") -> None:
    """One legend above all panels."""
    entries: dict[str, Artist] = {}
    for panel in axes:
        handles, labels = panel.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    columns = 2 if max(map(len, entries), default=0) > LONG else 4
    canvas.legend(list(entries.values()), list(entries), loc="outside upper left", ncols=columns)


def logarithmic(panel: "Axes", which: Literal["x", "y"]) -> None:
    """Makes an axis of a panel logarithmic, with few ticks, in plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis = panel.xaxis if which == "x" else panel.yaxis
    panel.set(**{f"{which}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 3), numticks=6))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
