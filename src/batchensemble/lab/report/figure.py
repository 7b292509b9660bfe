"""Figures as values, rendered to the same SVG and PNG every time."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from batchensemble.lab.report.style import DPI, RC, WIDTH, dark_aware

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True)
class Drawing:
    """A figure's two files."""

    svg: bytes
    png: bytes


@dataclass(frozen=True)
class Figure:
    """A figure with its caption.

    Args:
        name: name of its files.
        title: what it shows.
        caption: how to read it, and under which circumstances it was measured.
        alt: description for those who cannot see it.
        draw: draws on an empty matplotlib figure.
        size: width and height in inches.

    Examples:
        >>> figure = Figure("line", "A line", "", "a line", lambda canvas: canvas.subplots().plot([1, 2]))
        >>> figure.render() == figure.render()
        True
    """

    name: str
    title: str
    caption: str
    alt: str
    draw: Callable[["Canvas"], object] = field(compare=False, repr=False)
    size: tuple[float, float] = (WIDTH, 3.4)

    def render(self) -> Drawing:
        """Draw the figure without a display or a time stamp: the same bytes every time."""
        from matplotlib import style
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas

        with style.context(RC, after_reset=True):
            canvas = Canvas(figsize=self.size)
            FigureCanvasAgg(canvas)
            self.draw(canvas)
            svg, png = io.BytesIO(), io.BytesIO()
            canvas.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
            canvas.savefig(png, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
        return Drawing(dark_aware(svg.getvalue().decode()).encode(), png.getvalue())
