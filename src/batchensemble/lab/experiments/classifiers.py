"""Shared by the image experiments: the paper's networks and methods at every scale, and grids of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from batchensemble.lab.experiments.experiment import Grid, Row
from batchensemble.lab.methods.ensembles import BatchEnsemble, Dropout, Method, Naive, Single
from batchensemble.lab.records import SCALES, Published, Scale
from batchensemble.lab.studies.classification import Recipe, Settings

BASE: Mapping[Scale, Recipe] = {
    "paper": Recipe(),
    "short": Recipe(epochs=Recipe.epochs // 5),
    "small": Recipe(depth=14, width=1, share=0.1, epochs=8, batch=64, precision="fp32"),
    "smoke": Recipe(data="procedural10", depth=14, width=1, epochs=2, batch=8, precision="fp32"),
}
"""A single network on ten classes at each scale: the paper's ResNet-32x4; the same with few enough epochs that a whole
table takes an hour on one GPU; and what a CPU trains in minutes and in seconds."""

TEN: Mapping[Scale, str] = {**dict.fromkeys(SCALES, "CIFAR-10"), "smoke": "Procedural-10"}
HUNDRED: Mapping[Scale, str] = {**dict.fromkeys(SCALES, "CIFAR-100"), "smoke": "Procedural-100"}

SINGLE = "Single"
DROPOUT = "MC-dropout"
BATCH = "BatchEnsemble"
NAIVE = "Naive ensemble"
MEAN = "BatchEnsemble, decay of the mean weight"
LARGE = "BatchEnsemble, batch four times as large"
REPEATED = "BatchEnsemble, repeated batch"
OWN_NORMS = "BatchEnsemble, norm per member"
REPEATED_OWN_NORMS = "BatchEnsemble, repeated batch, norm per member"
BOTH = "BatchEnsemble + dropout"
NAIVE_SMALL = "Naive ensemble of small networks"
SINGLE_RELEASED = "Single, released schedule"
NAIVE_RELEASED = "Naive ensemble, released schedule"
OWN_NORMS_RELEASED = "BatchEnsemble, norm per member, released schedule"

IN_THE_PAPER = (SINGLE, DROPOUT, BATCH, NAIVE)
BEYOND_THE_PAPER = (
    *(REPEATED, OWN_NORMS, REPEATED_OWN_NORMS),
    *(SINGLE_RELEASED, NAIVE_RELEASED, OWN_NORMS_RELEASED),
)
"""The authors' released recipe, norms per member, and networks on that recipe's schedule; see `RECIPES`."""


def longer(base: Recipe, method: Method) -> Recipe:
    """Train half as long again, as the paper does with BatchEnsemble and dropout."""
    return replace(base, method=method, epochs=base.epochs * 3 // 2)


def released(base: Recipe, method: Method) -> Recipe:
    """Train as the authors' released code does: with a warm-up, other drops and four times the weight decay."""
    return replace(base, method=method, schedule="released", weight_decay=4e-4)


RECIPES: Mapping[str, Callable[[Recipe], Recipe]] = {
    SINGLE: lambda base: base,
    DROPOUT: lambda base: longer(base, Dropout()),
    BATCH: lambda base: longer(base, BatchEnsemble()),
    NAIVE: lambda base: replace(base, method=Naive()),
    MEAN: lambda base: longer(base, BatchEnsemble(decay="mean")),
    LARGE: lambda base: replace(base, method=BatchEnsemble(), batch=4 * base.batch),
    REPEATED: lambda base: released(base, BatchEnsemble(rows="repeated", init="normal", fast_lr_scale=0.5)),
    OWN_NORMS: lambda base: longer(base, BatchEnsemble(norm="member")),
    REPEATED_OWN_NORMS: lambda base: released(base, BatchEnsemble(rows="repeated", norm="member")),
    BOTH: lambda base: longer(base, BatchEnsemble(dropout=0.1)),
    NAIVE_SMALL: lambda base: replace(base, method=Naive(), depth={32: 14, 14: 8}[base.depth]),
    SINGLE_RELEASED: lambda base: released(base, Single()),
    NAIVE_RELEASED: lambda base: released(base, Naive()),
    OWN_NORMS_RELEASED: lambda base: longer(released(base, base.method), BatchEnsemble(norm="member")),
}
"""How the paper trains each method, as a change to its training of a single network. Norms per member are ours, and so
are networks with the repeated batch's schedule and weight decay, which tell what those are worth by themselves."""


def recipe(name: str, scale: Scale, data: str, share: float = 1.0) -> Recipe:
    """A method's recipe at a scale, on a share of the named data."""
    base = BASE[scale]
    return RECIPES[name](replace(base, data=data.lower().replace("-", ""), share=share * base.share))


def row(name: str, scale: Scale, data: str, /, **test: Any) -> Row:
    """The row of a method on some data; `test` says what to measure (see `Settings`)."""
    return Row(on(data, name), Settings(recipe(name, scale, data), **test))


def methods(
    *names: str, data: tuple[Mapping[Scale, str], ...] = (TEN,), single_seeds: int = 1, **test: Any
) -> dict[Scale, Grid]:
    """Grids of methods on data at every scale, with `single_seeds` seeds of the single network.

    The single networks of several seeds are also the members of the naive ensemble.
    """
    return {
        scale: Grid(
            tuple(
                replace(row(name, scale, images[scale], **test), seeds=_seeds(name, single_seeds))
                for images in data
                for name in names
            )
        )
        for scale in SCALES
    }


def _seeds(name: str, single_seeds: int) -> tuple[int, ...] | None:
    return tuple(range(single_seeds)) if name in (SINGLE, SINGLE_RELEASED) else None


def on(data: str, name: str) -> dict[str, str]:
    """The labels of a method on some data."""
    return {"method": name, "data": data}


def published(metric: str, data: str, **numbers: float) -> tuple[Published, ...]:
    """The paper's percentages for one data set; keywords are the method names above in lower case."""
    names = {"single": SINGLE, "dropout": DROPOUT, "batch": BATCH, "naive": NAIVE, "naive_small": NAIVE_SMALL}
    return tuple(Published(on(data, names[key]), metric, round(value / 100, 6)) for key, value in numbers.items())
