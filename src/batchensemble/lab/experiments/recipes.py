"""Which recipe makes members both strong and different? Not in the paper, which tried one."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from batchensemble.lab.experiments.classifiers import HUNDRED, SINGLE, recipe
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.methods.ensembles import BatchEnsemble, Method, Naive, Single
from batchensemble.lab.records import Scale
from batchensemble.lab.report.views import comparison
from batchensemble.lab.report.views import recipes as picture
from batchensemble.lab.studies.classification import CLASSIFICATION, Recipe, Settings

EPOCHS = 6
NORMAL = BatchEnsemble(rows="repeated", init="normal", fast_lr_scale=0.5)
SIGNS = BatchEnsemble(rows="repeated")

METHODS: Mapping[str, Method] = {
    "single": Single(),
    "naive ensemble": Naive(),
    "signs, split batch": BatchEnsemble(),
    "signs, split batch, norm per member": BatchEnsemble(norm="member"),
    "signs, repeated": SIGNS,
    "signs, own crops": replace(SIGNS, rows="own crops"),
    "signs, P(+1) = 0.75": replace(SIGNS, init="sign(0.75)"),
    "signs, P(+1) = 0.9": replace(SIGNS, init="sign(0.9)"),
    "signs, P(+1) = 0.95": replace(SIGNS, init="sign(0.95)"),
    "signs, norm per member": replace(SIGNS, norm="member"),
    "signs, own crops, norm per member": replace(SIGNS, rows="own crops", norm="member"),
    "signs, P(+1) = 0.75, norm per member": replace(SIGNS, init="sign(0.75)", norm="member"),
    "signs, fast weights at half the rate": replace(SIGNS, fast_lr_scale=0.5),
    "signs, decay of the mean weight": replace(SIGNS, decay="mean"),
    "signs, rank 2": replace(SIGNS, rank=2),
    "signs, rank 4": replace(SIGNS, rank=4),
    "signs, dropout": replace(SIGNS, dropout=0.1),
    "normal": NORMAL,
    "normal, own crops": replace(NORMAL, rows="own crops"),
    "normal, norm per member": replace(NORMAL, norm="member"),
    "normal, own crops, norm per member": replace(NORMAL, rows="own crops", norm="member"),
    "normal, KL 0.1": replace(NORMAL, diversity=0.1),
    "normal, rank 4": replace(NORMAL, rank=4),
    "first layer only": replace(NORMAL, init="first"),
}
VARIANTS: Mapping[str, tuple[Method, Mapping[str, Any]]] = {
    "single, as many rows": (Single(), {"epochs": 4 * EPOCHS}),
    "single, x2": (Single(), {"width": 2}),
    "signs, x2": (SIGNS, {"width": 2}),
    "normal, x2": (NORMAL, {"width": 2}),
    "single, x1": (Single(), {"width": 1}),
    "signs, x1": (SIGNS, {"width": 1}),
    "normal, x1": (NORMAL, {"width": 1}),
    "normal, fp32": (NORMAL, {"precision": "fp32"}),
}
"""Recipes that need a GPU: as many rows as four members see, widths other than the paper's x4, full precision."""
QUICK = ("single", "naive ensemble", "signs, split batch", "signs, rank 2", "normal, own crops, norm per member")
SHORT: Mapping[Scale, Callable[[Recipe], Recipe]] = {
    "paper": lambda base: replace(base, epochs=EPOCHS, schedule="cosine", weight_decay=5e-4),
    "small": lambda base: replace(base, schedule="cosine", weight_decay=5e-4),
    "smoke": lambda base: replace(base, epochs=1, share=0.2),
}


def _grid(scale: Scale) -> Grid:
    names = QUICK if scale == "smoke" else METHODS
    rows = [_row(name, METHODS[name], scale) for name in names]
    if scale == "paper":
        rows += [_row(name, method, scale, **changes) for name, (method, changes) in VARIANTS.items()]
    return Grid(tuple(rows))


def _row(name: str, method: Method, scale: Scale, **changes: Any) -> Row:
    short = SHORT[scale](recipe(SINGLE, scale, HUNDRED[scale]))
    return Row({"recipe": name, "data": HUNDRED[scale]}, Settings(replace(short, method=method, **changes)))


RECIPES = Experiment(
    id="recipes",
    item="Not in the paper: recipes of BatchEnsemble, members' accuracy against disagreement",
    claim="Members as strong as single networks that disagree as independent ones do would equal the naive ensemble. "
    "At the paper's scale the network and the data are the paper's, the training is not: six epochs, a cosine.",
    study=CLASSIFICATION,
    scales={scale: _grid(scale) for scale in SHORT},
    show=(
        picture(),
        comparison(
            "accuracy", "nll", "ece", "member_accuracy", "disagreement", "train_loss", rows="recipe", title="Recipes"
        ),
    ),
)
