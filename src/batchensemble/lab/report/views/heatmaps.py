"""Heat maps of matrices: the accuracy on every task after every task."""

import textwrap
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import Quantity, quantity, sentence
from batchensemble.lab.report.style import WIDTH
from batchensemble.lab.report.views.panels import grid, rows_of
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

WRITTEN = 6  # matrices up to this size show their numbers
Matrix = NDArray[np.float64]


def heatmaps(metric: str | Quantity, *, title: str = "") -> View:
    """Draw a matrix for every method, the mean over seeds, on a common colour scale.

    Reads a list of lists in the records; `None` where there is no number (a task not learned yet).
    """
    shown = quantity(metric)

    def view(evidence: Evidence) -> Figure:
        found = {name: _mean(part, shown) for name, part in evidence.kinds("method").items()}
        drawn = {name: matrix for name, matrix in found.items() if matrix is not None}
        if not drawn:
            raise NotMeasured(f"no run has {shown.name}")
        across = 2 if len(drawn) in (2, 4) else 3
        alt = f"Heat maps of {shown.name} for {'; '.join(drawn)}."
        caption = f"Means over seeds. {circumstances(evidence)}"
        size = (WIDTH, 0.6 + 5.2 / across * rows_of(len(drawn), across))
        draw = partial(_draw, drawn=drawn, across=across, label=shown.heading)
        return Figure("matrices", title or sentence([shown.name]), caption, alt, draw, size)

    return view


def _draw(canvas: "Canvas", drawn: Mapping[str, Matrix], across: int, label: str) -> None:
    every = np.concatenate([matrix[np.isfinite(matrix)] for matrix in drawn.values()])
    axes = grid(canvas, len(drawn), across, sharex=True, sharey=True)
    for panel, (name, matrix) in zip(axes, drawn.items(), strict=True):
        image = _panel(panel, matrix, float(every.min()), float(every.max()))
        panel.set_title(textwrap.fill(name, 26), fontsize=9)
    canvas.supxlabel("accuracy on task", fontsize=10)
    canvas.supylabel("after task", fontsize=10)
    bar = canvas.colorbar(image, ax=axes, label=label, shrink=0.8)
    bar.outline.set_visible(False)


def _mean(part: Evidence, shown: Quantity) -> Matrix | None:
    """The mean over seeds; matrices that differ in size from the first seed's do not count."""
    every = [np.array(matrix, dtype=np.float64) for _, matrix in part.with_metric(shown.metric)]
    same = [matrix for matrix in every if matrix.shape == every[0].shape]
    mean: Matrix | None = shown.factor * np.mean(same, axis=0) if same else None
    return mean


def _panel(panel: "Axes", matrix: Matrix, low: float, high: float) -> Any:
    image = panel.imshow(matrix, vmin=low, vmax=high, interpolation="nearest")
    panel.grid(visible=False)
    for spine in panel.spines.values():
        spine.set_visible(False)
    for axis, size in ((panel.xaxis, matrix.shape[1]), (panel.yaxis, matrix.shape[0])):
        ticks = sorted({0, size // 2 - 1, size - 1}) if size > WRITTEN else range(size)
        axis.set_ticks(ticks, [str(tick + 1) for tick in ticks])
    if max(matrix.shape) <= WRITTEN:
        for (row, column), value in np.ndenumerate(matrix):
            if np.isfinite(value):
                ink = "#fefefe" if value < (low + high) / 2 else "#111111"
                panel.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=8, color=ink)
    return image
