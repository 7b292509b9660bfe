"""The demo: all methods on handwritten digits, in a minute."""

from batchensemble.lab.experiments.classifiers import BATCH, BOTH, DROPOUT, NAIVE, RECIPES, REPEATED, SINGLE
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.report.views import comparison, diversity_against_accuracy, reliability_diagrams, training_curves
from batchensemble.lab.studies.classification import CLASSIFICATION, Settings
from batchensemble.lab.studies.recipe import Recipe

BASE = Recipe(data="digits", depth=8, width=1, epochs=12, batch=64, pad=0, precision="fp32")

DIGITS = Experiment(
    id="digits",
    item="Not in the paper: all methods on 1,797 handwritten digits",
    claim="Four members for the parameters of one network, beside one network and four.",
    study=CLASSIFICATION,
    show=(
        comparison("accuracy", "nll", "ece", "parameters", "passes", "training_seconds", title="All methods on digits"),
        reliability_diagrams(),
        diversity_against_accuracy(panels="data"),
        training_curves("cross_entropy", "accuracy"),
    ),
    scales={
        "smoke": Grid(
            tuple(
                Row({"method": name, "data": "Digits"}, Settings(RECIPES[name](BASE)).settings())
                for name in (SINGLE, DROPOUT, BATCH, REPEATED, BOTH, NAIVE)
            )
        )
    },
)
