"""Less training data: accuracy and diversity at 100, 50, 20 and 10 % of CIFAR-10."""

from collections.abc import Mapping

from batchensemble.lab.experiments.classifiers import BATCH, DROPOUT, NAIVE, SINGLE, TEN, recipe
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.records import SCALES, Published, Scale
from batchensemble.lab.studies.classification import CLASSIFICATION, Settings

SHARES = {"100 %": 1.0, "50 %": 0.5, "20 %": 0.2, "10 %": 0.1}
PUBLISHED: Mapping[str, tuple[float, float, float, float]] = {
    "100 %": (95.22, 95.40, 95.61, 96.09),
    "50 %": (92.20, 92.43, 92.93, 93.01),
    "20 %": (82.32, 84.5, 86.08, 86.17),
    "10 %": (69.37, 71.3, 76.75, 76.77),
}
NAMES = (SINGLE, DROPOUT, BATCH, NAIVE)


def _row(name: str, scale: Scale, share: str) -> Row:
    labels = {"method": name, "data": TEN[scale], "share": share}
    return Row(labels, Settings(recipe(name, scale, TEN[scale], SHARES[share])).settings())


def _grids(*names: str) -> dict[Scale, Grid]:
    return {scale: Grid(tuple(_row(name, scale, share) for share in SHARES for name in names)) for scale in SCALES}


PARTIAL_DATA = Experiment(
    id="cifar-partial",
    item='Table "Validation accuracy on ResNet32 with proportional training data"',
    claim="With less data BatchEnsemble stays close to the naive ensemble and leaves MC-dropout behind. "
    "The paper's 100 % row differs from its main table; both are printed.",
    study=CLASSIFICATION,
    scales=_grids(*NAMES),
    published=tuple(
        Published({"method": name, "data": "CIFAR-10", "share": share}, "accuracy", round(value / 100, 6))
        for share, values in PUBLISHED.items()
        for name, value in zip(NAMES, values, strict=True)
    ),
)

DIVERSITY = Experiment(
    id="cifar-diversity",
    item="Figure: diversity against accuracy, trained on 100, 50, 20 and 10 % of CIFAR-10",
    claim="As data shrinks, dropout's diversity does not grow, and BatchEnsemble's is on a par with the naive "
    "ensemble's.",
    study=CLASSIFICATION,
    scales=_grids(DROPOUT, BATCH, NAIVE),
)
