"""How members should start in a pre-trained network; not in the paper, which trains from scratch."""

from collections.abc import Mapping
from dataclasses import replace

from batchensemble.lab.experiments.classifiers import BASE, HUNDRED, SINGLE, TEN, recipe
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.methods.ensembles import BatchEnsemble, Method, Naive, Single
from batchensemble.lab.records import Scale
from batchensemble.lab.report.views import comparison, recipes
from batchensemble.lab.studies.classification import CLASSIFICATION, Recipe, Settings

ONES = BatchEnsemble(init="ones", fast_lr_scale=4.0)
METHODS: Mapping[str, Method] = {
    "single": Single(),
    "naive ensemble": Naive(),
    "ones": ONES,
    "ones, vectors at one rate": replace(ONES, fast_lr_scale=1.0),
    "ones, norm per member": replace(ONES, norm="member"),
    "normal(0.1)": replace(ONES, init="normal(0.1)"),
    "normal(0.3)": replace(ONES, init="normal(0.3)"),
    "normal(0.5)": replace(ONES, init="normal"),
    "sign(0.9)": replace(ONES, init="sign(0.9)"),
    "sign": replace(ONES, init="sign"),
    "normal(0.1), repeated": replace(ONES, init="normal(0.1)", rows="repeated"),
    "normal(0.3), repeated": replace(ONES, init="normal(0.3)", rows="repeated"),
}
QUICK = ("single", "ones", "normal(0.3), repeated")
STARTS: Mapping[Scale, Recipe] = {
    "short": recipe(SINGLE, "short", HUNDRED["short"]),
    "small": replace(BASE["small"], data="cifar100", share=0.4, epochs=10, schedule="cosine"),
    "smoke": replace(BASE["smoke"], data="procedural100", epochs=1),
}
"""The networks to start from, trained on CIFAR-100; fine-tuning uses a small share of CIFAR-10."""
TUNED: Mapping[Scale, Recipe] = {
    "short": replace(BASE["short"], share=0.1, epochs=20),
    "small": replace(BASE["small"], share=0.04, epochs=8),
    "smoke": replace(BASE["smoke"], epochs=1),
}


def _grid(scale: Scale) -> Grid:
    base = replace(TUNED[scale], lr=0.02, schedule="cosine", weight_decay=5e-4, start=STARTS[scale])
    names = QUICK if scale == "smoke" else METHODS
    rows = [Row({"recipe": name, "data": TEN[scale]}, Settings(replace(base, method=METHODS[name]))) for name in names]
    return Grid(tuple(rows), seeds=(0,) if scale == "smoke" else (0, 1, 2))


FINE_TUNING = Experiment(
    id="fine-tuning",
    item="Not in the paper: how members start in a pre-trained network",
    claim="A network that was trained on a hundred classes is tuned to few images of ten others. Members that start "
    "equal keep what it knows, and those that start apart differ: the question is where both are had.",
    study=CLASSIFICATION,
    scales={scale: _grid(scale) for scale in TUNED},
    show=(
        comparison(
            "accuracy",
            "nll",
            "ece",
            "member_accuracy",
            "disagreement",
            "train_accuracy",
            rows="recipe",
            title="How members start in a pre-trained network",
        ),
        recipes(title="Starts: members that keep what the network learned, and differ"),
    ),
)
