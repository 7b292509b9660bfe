"""Draws the idea: one shared weight, a rank-one matrix of signs for each member, and the members' weights.

python docs/make_idea_picture.py            # writes docs/assets/idea.png
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

Array = NDArray[np.float64]
ASSETS = Path(__file__).parent / "assets"
OUT, IN = 6, 8
CELL = 0.21  # inches
INK, PAPER = "#22303c", "#ffffff"
WARM_AND_COLD = LinearSegmentedColormap.from_list(
    "warm and cold", ["#1d6a8f", "#8fbdd0", "#faf8f4", "#eba986", "#c4512d"]
)
CAPTIONS = ("one shared weight", "two short vectors per member", "the members' weights")
MEMBERS = ("member 1", "member 2")


def signs(generator: np.random.Generator, size: int) -> Array:
    """As many +1 as -1, in random order."""
    return generator.permutation(np.where(np.arange(size) % 2, 1.0, -1.0))


def heatmap(figure: Figure, values: Array, left: float, top: float, strength: float = 1.0) -> Axes:
    """A matrix of square cells, its upper left corner at (left, top) inches; the colour is the value."""
    width, height = figure.get_size_inches()
    rows, columns = values.shape
    box = (left / width, 1 - (top + rows * CELL) / height, columns * CELL / width, rows * CELL / height)
    axes = figure.add_axes(box)
    axes.pcolormesh(values[::-1], cmap=WARM_AND_COLD, vmin=-1 / strength, vmax=1 / strength, edgecolors=PAPER, lw=0.8)
    axes.set_axis_off()
    return axes


def write(figure: Figure, x: float, y: float, text: str, size: float = 11, **style: object) -> None:
    """Text centred at (x, y) inches from the upper left corner."""
    width, height = figure.get_size_inches()
    settings = {"ha": "center", "va": "center", "color": INK, "fontsize": size} | style
    figure.text(x / width, 1 - y / height, text, **settings)


def mark_signs(axes: Axes, values: Array) -> None:
    """A plus or a minus in every cell."""
    rows, columns = values.shape
    for row in range(rows):
        for column in range(columns):
            symbol = "+" if values[row, column] > 0 else "\N{MINUS SIGN}"
            axes.text(
                column + 0.5,
                rows - row - 0.52,
                symbol,
                ha="center",
                va="center",
                color=PAPER,
                fontsize=9,
                weight="bold",
            )


def draw_member(figure: Figure, weight: Array, index: int, top: float, generator: np.random.Generator) -> None:
    """One member's row: s_i and r_i at the edges of their product, and the product with the shared weight."""
    s, r = signs(generator, OUT)[:, None], signs(generator, IN)[None]
    middle, product, result = top + OUT * CELL / 2, 3.45, 6.55
    mark_signs(heatmap(figure, s, product - 1.5 * CELL, top), s)
    mark_signs(heatmap(figure, r, product, top - 1.5 * CELL), r)
    heatmap(figure, s @ r, product, top, strength=0.62)
    heatmap(figure, weight * (s @ r), result, top)
    write(figure, product - 2.3 * CELL, middle, f"$s_{index}$", 14)
    write(figure, product - 0.75 * CELL, top - 0.75 * CELL, f"$r_{index}$", 14)
    write(figure, product + IN * CELL / 2, top + OUT * CELL + 0.2, f"$s_{index}\\,r_{index}^\\top$", 13)
    write(figure, (product + result + IN * CELL) / 2, middle, "$=$", 20)
    write(figure, result + IN * CELL / 2, top + OUT * CELL + 0.2, f"$W\\circ s_{index}\\,r_{index}^\\top$", 13)
    write(figure, result + IN * CELL / 2, top - 0.75 * CELL, MEMBERS[index - 1], 12, weight="bold")


def draw() -> Figure:
    """The whole picture: the shared weight on the left, a row for each member."""
    generator = np.random.default_rng(5)
    weight = np.clip(generator.normal(0, 0.6, (OUT, IN)), -1, 1)
    figure = Figure(figsize=(8.6, 4.75), facecolor=PAPER)
    tops = (0.95, 2.98)
    left, top = 0.3, (tops[0] + tops[1]) / 2
    heatmap(figure, weight, left, top)
    write(figure, left + IN * CELL / 2, top + OUT * CELL + 0.2, "$W$", 14)
    for x, caption in zip((0.3, 3.45, 6.55), CAPTIONS, strict=True):
        write(figure, x + IN * CELL / 2, 0.25, caption, 10.5, color="#5d6b76")
    for index, row in enumerate(tops, start=1):
        write(figure, 2.5, row + OUT * CELL / 2 + (0.45, -0.45)[index - 1], r"$\circ$", 20)
        draw_member(figure, weight, index, row, generator)
    return figure


def main() -> None:
    """Writes the picture beside this script."""
    mpl.rcParams |= {"mathtext.fontset": "cm"}
    ASSETS.mkdir(exist_ok=True)
    figure = draw()
    figure.savefig(ASSETS / "idea.png", dpi=200, metadata={"Software": None})


if __name__ == "__main__":
    main()
