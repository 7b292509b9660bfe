"""Less training data: accuracy and diversity at 100, 50, 20 and 10 % of CIFAR-10."""

from batchensemble.lab.experiments.classifiers import (
    BATCH,
    DROPOUT,
    IN_THE_PAPER,
    NAIVE,
    REPEATED,
    REPEATED_OWN_NORMS,
    TEN,
    recipe,
)
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.records import SCALES, Published, Scale
from batchensemble.lab.report.views import View, comparison, diversity_against_accuracy, no_worse, on_a_par, over_label
from batchensemble.lab.studies.classification import CLASSIFICATION, Settings

SHARES = {"100 %": 1.0, "50 %": 0.5, "20 %": 0.2, "10 %": 0.1}
PUBLISHED = (
    ("100 %", (95.22, 95.40, 95.61, 96.09)),
    ("100 %", (95.31, 95.72, 95.94, 96.30)),  # the same in the paper's main table
    ("50 %", (92.20, 92.43, 92.93, 93.01)),
    ("20 %", (82.32, 84.5, 86.08, 86.17)),
    ("10 %", (69.37, 71.3, 76.75, 76.77)),
)


def _row(name: str, scale: Scale, share: str) -> Row:
    labels = {"method": name, "data": TEN[scale], "share": share}
    return Row(labels, Settings(recipe(name, scale, TEN[scale], SHARES[share])))


def _grids(*names: str) -> dict[Scale, Grid]:
    return {scale: Grid(tuple(_row(name, scale, share) for share in SHARES for name in names)) for scale in SCALES}


def _as_accurate(share: str) -> View:
    words = f"With {share} of the data BatchEnsemble is as accurate as the naive ensemble (within a point)."
    return no_worse("accuracy", _at(share, BATCH), _at(share, NAIVE), words, within=0.01)


def _does_not_grow(share: str) -> View:
    words = f"Dropout's disagreement with {share} of the data is what it is with all of it (within 0.03)."
    return on_a_par("disagreement", _at(share, DROPOUT), _at("100 %", DROPOUT), words, within=0.03)


def _as_diverse(share: str) -> View:
    words = f"With {share} of the data BatchEnsemble is as diverse as the naive ensemble (within 0.1)."
    return on_a_par("disagreement_over_error", _at(share, BATCH), _at(share, NAIVE), words, within=0.1)


def _at(share: str, name: str) -> dict[str, str]:
    return {"method": name, "share": share}


AGAINST_FIRST = ("base_disagreement", "base_disagreement_over_error", "base_kl", "base_kl_over_error")
OVER_PAIRS = ("disagreement", "disagreement_over_error", "pairwise_kl", "pairwise_kl_over_error")

PARTIAL_DATA = Experiment(
    id="cifar-partial",
    item='Table "Validation accuracy on ResNet32 with proportional training data"',
    claim="With less data BatchEnsemble stays close to the naive ensemble and leaves MC-dropout behind. "
    "The paper's 100 % row differs from its main table; both are printed.",
    study=CLASSIFICATION,
    scales=_grids(*IN_THE_PAPER, REPEATED, REPEATED_OWN_NORMS),
    show=(
        comparison("accuracy", columns="share", title="Accuracy by share of the training data"),
        over_label("share", "accuracy", "ece", xlabel="share of the training data (%)"),
        *(_as_accurate(share) for share in ("50 %", "20 %", "10 %")),
    ),
    published=tuple(
        Published({"method": name, "data": "CIFAR-10", "share": share}, "accuracy", round(value / 100, 6))
        for share, values in PUBLISHED
        for name, value in zip(IN_THE_PAPER, values, strict=True)
    ),
)

DIVERSITY = Experiment(
    id="cifar-diversity",
    item="Figure: diversity against accuracy, trained on 100, 50, 20 and 10 % of CIFAR-10",
    claim="As data shrinks, dropout's diversity does not grow, and BatchEnsemble's is on a par with the naive "
    "ensemble's.",
    study=CLASSIFICATION,
    scales=_grids(DROPOUT, BATCH, NAIVE, REPEATED, REPEATED_OWN_NORMS),
    show=(
        *(
            diversity_against_accuracy(metric, panel_title="{} of the training data", name=metric)
            for metric in AGAINST_FIRST
        ),
        comparison(*OVER_PAIRS, rows=("share", "method"), title="Diversity over all pairs of members"),
        *(_does_not_grow(share) for share in ("50 %", "20 %")),
        *(_as_diverse(share) for share in ("50 %", "20 %", "10 %")),
    ),
)
