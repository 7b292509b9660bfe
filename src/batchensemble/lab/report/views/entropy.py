"""Entropy of predictions on known classes and on classes never seen."""

import textwrap
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.report.circumstances import circumstances, not_drawn
from batchensemble.lab.report.evidence import Evidence, NotMeasured, Summary
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import quantity
from batchensemble.lab.report.style import BLUE, MUTED, ORANGE, WIDTH
from batchensemble.lab.report.views.panels import grid, legend, rows_of
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

ARRAYS = ("entropy_known", "entropy_unknown")
BINS = 30
WIDEST = 32  # letters of a title that fit above a panel
HOW = (
    "Entropy of the mean prediction, all seeds pooled: the share of images in each bin. AUROC: how often an unseen "
    "image has higher entropy than a known one (50 % is chance)."
)
Entropies = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Entropies of known and of unseen images."""


def entropy_histograms() -> View:
    """Draw histograms for known and unseen images and every method, with the AUROC of telling them apart.

    Reads the arrays `entropy_known` and `entropy_unknown` and the metric `auroc` of the records.
    """

    def view(evidence: Evidence) -> Figure:
        kinds = evidence.kinds("method")
        drawn = {name: both for name, part in kinds.items() if (both := _entropies(part)) is not None}
        if not drawn:
            raise NotMeasured("no run has been measured on unseen classes")
        alt = f"Histograms of predictive entropy on known and unseen classes for {'; '.join(drawn)}."
        size = (WIDTH, 0.8 + 1.9 * rows_of(len(drawn)))
        said = " ".join(filter(None, (HOW, not_drawn(kinds, *ARRAYS), circumstances(evidence))))
        aurocs = {name: kinds[name].summary("auroc") for name in drawn}
        draw = partial(_draw, drawn=drawn, aurocs=aurocs)
        return Figure("entropy", "Entropy on known and on unseen classes", said, alt, draw, size)

    return view


def _draw(canvas: "Canvas", drawn: Mapping[str, Entropies], aurocs: Mapping[str, Summary | None]) -> None:
    top = max(float(side.max()) for both in drawn.values() for side in both)
    axes = grid(canvas, len(drawn), sharex=True, sharey=True)
    for panel, (name, both) in zip(axes, drawn.items(), strict=True):
        _panel(panel, both, np.linspace(0, top, BINS + 1))
        panel.set_title(textwrap.fill(name, WIDEST))
        _write_auroc(panel, aurocs[name])
    canvas.supxlabel("predictive entropy (nats)", fontsize=10)
    canvas.supylabel("share of images (%)", fontsize=10)
    legend(canvas, axes)


def _entropies(part: Evidence) -> Entropies | None:
    results = list(part.with_arrays(*ARRAYS))
    if not results:
        return None
    known, unseen = (
        np.concatenate([np.asarray(result.record.arrays[name], dtype=np.float64) for result in results])
        for name in ARRAYS
    )
    return known, unseen


def _panel(panel: "Axes", both: Entropies, bins: NDArray[Any]) -> None:
    for values, colour, label, fill in zip(both, (BLUE, ORANGE), ("known", "unseen"), (0.35, 0.25), strict=True):
        shares = 100 * np.histogram(values, bins)[0] / len(values)
        panel.stairs(shares, bins, fill=True, color=colour, alpha=fill)
        panel.stairs(shares, bins, color=colour, linewidth=1.6, label=label)
    panel.margins(x=0)


def _write_auroc(panel: "Axes", auroc: Summary | None) -> None:
    if auroc:
        text = f"AUROC {quantity('auroc').summary(auroc)} %"
        panel.text(0.97, 0.92, text, transform=panel.transAxes, ha="right", va="top", fontsize=9, color=MUTED)
