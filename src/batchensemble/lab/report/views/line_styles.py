"""How curves look: the same in all panels of a figure, and in its legend."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from batchensemble.lab.report.style import DASHES, colours, markers
from batchensemble.lab.report.views.lines import Curve, LineStyle

MARKED = 25  # curves with more points have no markers
ON_TOP = (0, (4, 4))
COINCIDE = 0.003  # curves that differ by less of their panel's height cover each other: it is less than a line is thick


def line_styles(panels: Sequence[Mapping[str, Curve]]) -> dict[str, LineStyle]:
    """How the curves of a figure look, by name: the same in all panels, as the legend has it.

    Colours, markers and, where there are too many points for markers, dashes tell them apart. A curve that covers an
    earlier one in any panel is dashed, so that both are visible.

    Examples:
        >>> alike = [Curve.over([([1, 2], [0.5, 0.7])])] * 2
        >>> [style["linestyle"] for style in line_styles([dict(zip(("Single", "BatchEnsemble"), alike))]).values()]
        ['-', (0, (4, 4))]
    """
    names = dict.fromkeys(name for curves in panels for name in curves)
    many = {name for curves in panels for name, curve in curves.items() if len(curve.x) > MARKED}
    above = {name for curves in panels for name in _covering(curves)}
    used: Counter[str] = Counter()
    marks = markers(names)
    found: dict[str, LineStyle] = {}
    for name, colour in colours(names).items():
        dash = DASHES[used[colour] % len(DASHES)] if name in many else "-"
        marker = None if name in many else marks[name]
        found[name] = {"color": colour, "marker": marker, "linestyle": ON_TOP if name in above else dash}
        used[colour] += 1
    return found


def _covering(curves: Mapping[str, Curve]) -> Iterator[str]:
    """The names of curves that cover an earlier one."""
    means = [curve.mean for curve in curves.values()]
    height = max(map(np.nanmax, means)) - min(map(np.nanmin, means)) if means else 0.0
    earlier: list[Curve] = []
    for name, curve in curves.items():
        if any(curve.covers(other, COINCIDE * height) for other in earlier):
            yield name
        earlier.append(curve)
