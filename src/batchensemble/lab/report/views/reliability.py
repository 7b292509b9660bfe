"""Reliability diagrams: how often predictions are right, by confidence."""

import textwrap
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from batchensemble.lab.report.circumstances import circumstances, not_drawn
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import quantity
from batchensemble.lab.report.style import BLUE, GREEN, INK, MUTED, ORANGE
from batchensemble.lab.report.views.panels import rows_of
from batchensemble.lab.report.views.view import View
from batchensemble.metrics import Reliability, reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

HOW = (
    "Accuracy by confidence, all seeds pooled; the dashed line is perfect calibration. Orange: overconfident. Green: "
    "underconfident. The bars below show the share of images in each bin; bins with fewer than {few} are faded."
)

ARRAYS = ("logits", "labels")
FEW = 10  # with fewer images, the share of right answers is mostly chance
MOST = 5  # diagrams side by side


def reliability_diagrams() -> View:
    """Draw a reliability diagram for every method, with its ECE.

    Reads the arrays `logits (members, N, classes)` and `labels (N,)` and the metric `ece` of the records.
    """

    def view(evidence: Evidence) -> Figure:
        kinds = evidence.kinds("method")
        drawn = {name: diagram for name, part in kinds.items() if (diagram := _diagram(part)) is not None}
        if not drawn:
            raise NotMeasured("no run has kept its predictions")
        across = rows_of(len(drawn), rows_of(len(drawn), MOST))  # six as three and three, not five and one
        alt = f"Reliability diagrams of {'; '.join(drawn)}."
        said = (HOW.format(few=FEW), not_drawn(kinds, *ARRAYS), circumstances(evidence))
        size = (0.8 + 1.75 * across, 0.5 + 3.0 * rows_of(len(drawn), across))
        panels = {_headline(name, kinds[name]): diagram for name, diagram in drawn.items()}
        draw = partial(_draw, drawn=panels, across=across)
        return Figure("reliability", "Reliability", " ".join(filter(None, said)), alt, draw, size)

    return view


def _draw(canvas: "Canvas", drawn: Mapping[str, Reliability], across: int) -> None:
    down = rows_of(len(drawn), across)
    ratios = (3, 1) * down
    axes = canvas.subplots(2 * down, across, sharex=True, sharey="row", squeeze=False, height_ratios=ratios)
    pairs = axes.reshape(down, 2, across).transpose(0, 2, 1).reshape(-1, 2)  # a diagram and the bars below it
    for (above, below), (headline, diagram) in zip(pairs, drawn.items(), strict=False):
        _panel(above, below, diagram)
        above.set_title(headline, fontsize=8.5)
    for panel in pairs[len(drawn) :].flat:
        panel.set_axis_off()
    for _, below in pairs[len(drawn) - across : len(drawn)]:  # a column may end a row above the others
        below.tick_params(labelbottom=True)
    for above, below in pairs[::across]:
        above.set_ylabel("accuracy")
        below.set_ylabel("share")
    canvas.supxlabel("confidence", fontsize=10)


def _diagram(part: Evidence) -> Reliability | None:
    import torch

    results = list(part.with_arrays(*ARRAYS))
    if not results:
        return None
    probs = [
        torch.from_numpy(np.asarray(result.record.arrays["logits"], dtype=np.float64)).softmax(-1).mean(0)
        for result in results
    ]
    right = [torch.from_numpy(np.asarray(result.record.arrays["labels"], dtype=np.int64)) for result in results]
    return reliability(torch.cat(probs), torch.cat(right))


def _panel(above: "Axes", below: "Axes", diagram: Reliability) -> None:
    there = (diagram.count > 0).numpy()
    edges = diagram.edges.numpy()
    left, width = edges[:-1][there], np.diff(edges)[there]
    accuracy, confidence = diagram.accuracy.numpy()[there], diagram.confidence.numpy()[there]
    both = np.minimum(accuracy, confidence)
    sure = np.where(diagram.count.numpy()[there] < FEW, 0.25, 1.0)
    for colour, height, bottom, strength in (
        (BLUE, both, 0.0, sure),
        (ORANGE, confidence - both, both, 0.6 * sure),
        (GREEN, accuracy - both, both, 0.6 * sure),
    ):
        above.bar(left, height, width, bottom, align="edge", color=[(colour, one) for one in strength], linewidth=0)
    above.plot([0, 1], [0, 1], "--", color=INK, linewidth=0.9)
    above.set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), xticklabels=("0", "0.5", "1"))
    share = (diagram.count / diagram.count.sum()).numpy()[there]
    below.bar(left, share, width, align="edge", color=MUTED, linewidth=0)
    below.set(ylim=(0, 1), yticks=(0, 1))


def _headline(name: str, part: Evidence) -> str:
    """A name with its ECE below it."""
    ece = part.summary("ece")
    wrapped = textwrap.fill(name, 20)
    return f"{wrapped}\nECE {quantity('ece').summary(ece)} %" if ece else wrapped
