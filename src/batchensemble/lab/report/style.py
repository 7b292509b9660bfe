"""One quiet style for all figures: colours that everybody can tell apart, on light and dark pages."""

from collections.abc import Iterable
from typing import Any

INK, MUTED, RULE, GROUND = "#24292f", "#636c76", "#d1d9e0", "#ffffff"
DARK = {INK: "#e6edf3", MUTED: "#9198a1", RULE: "#3d444d", GROUND: "#0d1117"}
"""The colours that change on dark pages; those of the data do not."""

GREY, BLUE, ORANGE, GREEN, PURPLE, RED, SKY, OLIVE = (
    "#7d8590", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#9a8700"
)  # fmt: skip
"""After Okabe and Ito: distinguishable with every kind of colour vision."""
# More, for figures with twelve methods:
BROWN, LILAC, ROSE, PINE, WINE = "#a0622d", "#8f7ee7", "#e8a09a", "#2f6b4f", "#b0305c"

WIDTH = 6.4  # inches; ten-point letters stay legible at half this width
DPI = 160

_NAMED = {
    "ewc": RED,
    "pnn": PURPLE,
    "bntuned": OLIVE,
    "separatenetworks": SKY,
    "den": ORANGE,
    "rcl": GREEN,
    "batchensemble8": BLUE,
    "batchensemble4": SKY,
    "naiveensemble8": GREEN,
    "naiveensemble4": OLIVE,
    "neurallinear": PURPLE,
    "linfullpost": RED,
}
_FAMILIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("single", "released"), ROSE),
    (("single",), GREY),
    (("vanilla",), GREY),
    (("uniform",), GREY),
    (("batchensemble", "dropout"), PURPLE),
    (("batchensemble", "repeated", "norm"), BROWN),
    (("batchensemble", "norm", "released"), WINE),
    (("batchensemble", "norm"), LILAC),
    (("batchensemble", "repeated"), RED),
    (("batchensemble", "mean"), OLIVE),
    (("batchensemble", "large"), SKY),
    (("batchensemble",), BLUE),
    (("naive", "small"), SKY),
    (("naive", "released"), PINE),
    (("naive",), GREEN),
    (("dropout", "128"), SKY),
    (("dropout",), ORANGE),
)
_FURTHER = (RED, PURPLE, OLIVE, SKY, ORANGE, GREEN, BLUE, GREY)
_MARKERS = {GREY: "o", BLUE: "D", ORANGE: "s", GREEN: "^", PURPLE: "v", RED: "P", SKY: "X", OLIVE: "p"}
_MARKERS |= {BROWN: "<", LILAC: ">", ROSE: "8", PINE: "H", WINE: "h"}
_FURTHER_MARKERS = ("*", "d")
DASHES = ("-", "--", ":", "-.", (0, (8, 2, 1, 1, 1, 1, 1, 2)), (0, (12, 4)))

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib: the same glyphs on every machine
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.0,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.0,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "image.cmap": "viridis",
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "batchensemble",  # makes the ids inside an SVG reproducible
}


def colours(names: Iterable[str]) -> dict[str, str]:
    """Assign a colour to every method: the paper's methods keep theirs in every figure, others get what is left.

    Examples:
        >>> found = colours(["Single", "BatchEnsemble", "BatchEnsemble, repeated batch", "EWC"])
        >>> found["BatchEnsemble"] == BLUE, len(set(found.values()))
        (True, 4)
    """
    names = list(dict.fromkeys(names))
    chosen: dict[str, str] = {}
    for name in sorted(names, key=len):  # a plain name comes before its variants
        colour = _family(name)
        if colour and colour not in chosen.values():
            chosen[name] = colour
    left = [colour for colour in _FURTHER if colour not in chosen.values()] or list(_FURTHER)
    others = [name for name in names if name not in chosen]
    chosen |= {name: left[place % len(left)] for place, name in enumerate(others)}
    return {name: chosen[name] for name in names}


def markers(names: Iterable[str]) -> dict[str, str]:
    """Assign a marker to every method, according to its colour; methods that share a colour get other markers.

    Examples:
        >>> markers(["Single", "BatchEnsemble"])["BatchEnsemble"] == markers(["BatchEnsemble"])["BatchEnsemble"]
        True
    """
    found: dict[str, str] = {}
    for name, colour in colours(names).items():
        left = [_MARKERS[colour], *_FURTHER_MARKERS]
        found[name] = next((marker for marker in left if marker not in found.values()), left[0])
    return found


def _family(name: str) -> str | None:
    plain = name.lower().replace(" ", "").replace("-", "")
    found = (colour for words, colour in _FAMILIES if all(word in plain for word in words))
    return _NAMED.get(plain) or next(found, None)


def dark_aware(svg: str) -> str:
    """Make the ink of an SVG turn light for readers who prefer dark pages."""
    rules = "".join(
        f'[style*="{kind}: {light}"]{{{kind}:{dark}!important}}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    )
    return svg.replace("</style>", f"@media (prefers-color-scheme: dark){{{rules}}}</style>", 1)
