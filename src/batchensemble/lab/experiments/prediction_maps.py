"""Individual test images, and what every member predicts for them."""

from batchensemble.lab.experiments.classifiers import BATCH, NAIVE, REPEATED, SINGLE, TEN, recipe, row
from batchensemble.lab.experiments.experiment import Experiment, Grid
from batchensemble.lab.records import SCALES
from batchensemble.lab.report.views import comparison
from batchensemble.lab.report.views import prediction_maps as maps
from batchensemble.lab.studies.classification import CLASSIFICATION

PREDICTION_MAPS = Experiment(
    id="cifar-maps",
    item='Figure "Visualizing prediction diversity"',
    claim="Where a single network is confidently wrong, members disagree and their mean is right; BatchEnsemble's "
    "members are as diverse as a naive ensemble's.",
    study=CLASSIFICATION,
    show=(
        maps("telling", name="telling", title="Where a single network is confidently wrong and the ensemble is right"),
        maps("drawn", name="drawn", title="Test images drawn at random"),
        comparison("accuracy", "ece"),
    ),
    scales={
        scale: Grid(
            tuple(
                row(name, scale, TEN[scale], test="pictures", against=recipe(SINGLE, scale, TEN[scale]))
                for name in (BATCH, NAIVE, REPEATED)
            )
        )
        for scale in SCALES
    },
)
