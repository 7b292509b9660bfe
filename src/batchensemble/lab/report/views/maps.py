"""Prediction maps: images, and what every member predicts for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.records import Record
from batchensemble.lab.report.circumstances import circumstances
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.style import GREY, MUTED, RED
from batchensemble.lab.report.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

CLASSES = 10  # most columns; with more classes, the most probable are shown
HOW = (
    "Each map shows the probability of every class (columns) according to the members' mean, each member (E1, E2, "
    "...) and a single network (rows); darker is more probable. The correct class is framed, its name bold."
)


@dataclass(frozen=True)
class _Map:
    """An image `(H, W, C)`, its probabilities `(rows, columns)`, the names of both, and the correct column."""

    picture: NDArray[Any]
    probs: NDArray[np.float64]
    rows: tuple[str, ...]
    classes: tuple[str, ...]
    right: int


def prediction_maps(
    which: Literal["drawn", "telling"] = "drawn",
    *,
    count: int = 5,
    name: str = "maps",
    title: str = "What every member predicts",
) -> View:
    """Draw images with the probabilities of mean, members and a single network, for every method.

    Args:
        which: `drawn` for the first images, drawn at random by seed; `telling` for those where the single network is
            sure and wrong and the ensemble is right.
        count: images per method.
        name: name of its files.
        title: what it shows.

    Reads the arrays `pictures (N, C, H, W)`, `labels (N,)`, `logits (members, N, classes)`, `single (N, classes)`,
    `rows (N,)` and the metric `class_names` of the first record of each method.
    """

    def view(evidence: Evidence) -> Figure:
        firsts = {
            method: next(part.with_arrays("pictures", "labels", "logits", "single", "rows"), None)
            for method, part in evidence.kinds("method").items()
        }
        found = {
            method: maps for method, first in firsts.items() if first and (maps := _maps(first.record, which, count))
        }
        if not found:
            telling = "there is no image on which the single network is wrong and the ensemble right"
            raise NotMeasured("no run has kept images" if which == "drawn" else telling)
        across = max(map(len, found.values()))
        alt = f"Test images with the class probabilities of mean, members and single for {'; '.join(found)}."
        size = (1.75 * across + 0.4, 3.9 * len(found))
        draw = partial(_draw, drawn=found, across=across)
        return Figure(name, title, f"{HOW} {circumstances(evidence)}", alt, draw, size)

    return view


def _draw(canvas: "Canvas", drawn: Mapping[str, Sequence[_Map]], across: int) -> None:
    blocks = canvas.subfigures(len(drawn), 1, squeeze=False)[:, 0]
    for block, (method, maps) in zip(blocks, drawn.items(), strict=True):
        block.suptitle(method, x=0.01, ha="left", fontsize=10, fontweight="bold")
        axes = block.subplots(2, across, squeeze=False, height_ratios=(1, 1.15))
        for place in range(across):
            _column(axes[:, place], maps[place] if place < len(maps) else None, first=place == 0)


def _maps(record: Record, which: str, count: int) -> list[_Map]:
    """Build the maps of a record's first images of the kind asked for."""
    members = _softmax(record.arrays["logits"])
    single, labels = _softmax(record.arrays["single"]), np.asarray(record.arrays["labels"])
    mean = members.mean(0)
    # Each image once: one may be both drawn by seed and telling.
    order = sorted(np.unique(record.arrays["rows"], return_index=True)[1].tolist())
    if which == "telling":
        tells = (mean.argmax(-1) == labels) & (single.argmax(-1) != labels)
        order = sorted(filter(tells.__getitem__, order), key=lambda place: -single[place].max())
    names = record.metrics.get("class_names") or [str(number) for number in range(mean.shape[-1])]
    rows = ("mean", *(f"E{place}" for place in range(1, len(members) + 1)), "single")
    every = np.concatenate([mean[None], members, single[None]])  # (rows, N, classes)
    return [
        _map(np.asarray(record.arrays["pictures"][place]), every[:, place], rows, names, int(labels[place]))
        for place in order[:count]
    ]


def _map(picture: NDArray[Any], probs: NDArray[np.float64], rows: tuple[str, ...], names: Any, right: int) -> _Map:
    strongest = np.argsort(-probs.max(0), kind="stable")[:CLASSES]
    shown = sorted({*map(int, strongest), right})
    if len(shown) > CLASSES:  # keep the correct class, drop the least probable
        shown = sorted({*map(int, strongest[: CLASSES - 1]), right})
    return _Map(
        picture.transpose(1, 2, 0),
        probs[:, shown],
        rows,
        tuple(str(names[place]) for place in shown),
        shown.index(right),
    )


def _softmax(logits: Any) -> NDArray[np.float64]:
    logits = np.asarray(logits, dtype=np.float64)
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    probs: NDArray[np.float64] = powers / powers.sum(-1, keepdims=True)
    return probs


def _column(axes: "NDArray[Any]", drawn: _Map | None, *, first: bool) -> None:
    above, below = axes
    above.set_axis_off()
    if drawn is None:
        below.set_axis_off()
        return
    above.imshow(drawn.picture.squeeze(), cmap="gray", interpolation="nearest")
    below.imshow(drawn.probs, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    _frame(below, drawn)
    below.set_yticks(range(len(drawn.rows)), drawn.rows if first else [""] * len(drawn.rows))
    below.set_xticks(range(len(drawn.classes)), drawn.classes, rotation=90, fontsize=8)
    below.get_xticklabels()[drawn.right].set(color=RED, fontweight="bold")
    below.tick_params(length=0)
    below.grid(visible=False)


def _frame(panel: "Axes", drawn: _Map) -> None:
    """Frame the correct class, and separate mean, members and single by lines."""
    from matplotlib.patches import Rectangle

    height = len(drawn.rows)
    corner = (drawn.right - 0.5, -0.5)
    panel.add_patch(Rectangle(corner, 1, height, fill=False, edgecolor=RED, linewidth=1.4, clip_on=False))
    for line in (0.5, height - 1.5):
        panel.axhline(line, color=GREY, linewidth=0.8)  # the map is light even on dark pages
    for spine in panel.spines.values():
        spine.set(visible=True, color=MUTED)
