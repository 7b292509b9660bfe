"""Several panels in one figure, and one legend for all of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

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
