"""Single test pictures and what every member says of them."""

from batchensemble.lab.experiments.classifiers import BATCH, NAIVE, SINGLE, TEN, recipe, row
from batchensemble.lab.experiments.experiment import Experiment, Grid
from batchensemble.lab.records import SCALES
from batchensemble.lab.studies.classification import CLASSIFICATION

PREDICTION_MAPS = Experiment(
    id="cifar-maps",
    item='Figure "Visualizing prediction diversity"',
    claim="Where a single network is sure and wrong, members disagree and their mean is right; BatchEnsemble's members "
    "are as diverse as a naive ensemble's.",
    study=CLASSIFICATION,
    scales={
        scale: Grid(
            tuple(
                row(name, scale, TEN[scale], test="pictures", against=recipe(SINGLE, scale, TEN[scale]))
                for name in (BATCH, NAIVE)
            )
        )
        for scale in SCALES
    },
)
