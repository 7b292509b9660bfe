"""The demo: all methods on handwritten digits, in a minute."""

from typing import Any

from batchensemble.lab.experiments.classifiers import (
    BATCH,
    DROPOUT,
    NAIVE,
    OWN_NORMS,
    RECIPES,
    REPEATED_OWN_NORMS,
    SINGLE,
)
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.records import Scale
from batchensemble.lab.report import Quantity
from batchensemble.lab.report.views import (
    comparison,
    diversity_against_accuracy,
    entropy_histograms,
    reliability_diagrams,
    training_curves,
)
from batchensemble.lab.studies.classification import CLASSIFICATION, Recipe, Settings

BASE = Recipe(data="digits", share=0.25, depth=8, width=1, epochs=40, batch=64, pad=0, precision="fp32")
"""A quarter of the digits: trained on all of them, one network makes hardly a mistake."""
ACCURACY = Quantity("accuracy", "accuracy", "%", 100.0, 1, "higher")
NLL = Quantity("nll", "NLL", digits=2, better="lower")
ECE = Quantity("ece", "ECE", "%", 100.0, 1, "lower")
PARAMETERS = Quantity("parameters", "params", "M", 1e-6, 3, "lower")
TIME = Quantity("training_seconds", "time", "s", digits=1, better="lower")
ON_DIGITS = Quantity("information_known", "mutual information, digits", "nats", digits=3)
ON_NOISE = Quantity("information_unknown", "mutual information, noise", "nats", digits=3)


def _grids(data: str, **test: Any) -> dict[Scale, Grid]:
    methods = (SINGLE, DROPOUT, BATCH, OWN_NORMS, REPEATED_OWN_NORMS, NAIVE)
    rows = (Row({"method": name, "data": data}, Settings(RECIPES[name](BASE), **test)) for name in methods)
    return {"smoke": Grid(tuple(rows), seeds=(0, 1, 2))}


DIGITS = Experiment(
    id="digits",
    item="Not in the paper: all methods, trained on 337 handwritten digits",
    claim="Four members for the parameters of one network, beside one network and four.",
    study=CLASSIFICATION,
    show=(
        comparison(ACCURACY, NLL, ECE, PARAMETERS, TIME, title="All methods on digits"),
        reliability_diagrams(),
        diversity_against_accuracy(panels="data"),
        training_curves("cross_entropy", "accuracy"),
    ),
    scales=_grids("Digits"),
)
NOISE = Experiment(
    id="digits-noise",
    item="Not in the paper: the same networks, shown noise",
    claim="Members that agree on digits disagree on noise.",
    study=CLASSIFICATION,
    show=(
        comparison(ON_DIGITS, ON_NOISE, "auroc", title="Telling noise from digits by entropy"),
        entropy_histograms(),
    ),
    scales=_grids("Digits and noise", test="unseen"),
)
