"""Expected calibration error of the networks in the table of accuracies."""

from batchensemble.lab.experiments.classifiers import (
    BATCH,
    BEYOND_THE_PAPER,
    DROPOUT,
    HUNDRED,
    IN_THE_PAPER,
    SINGLE,
    TEN,
    methods,
    on,
    published,
)
from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.report.views import View, comparison, lower, reliability_diagrams
from batchensemble.lab.studies.classification import CLASSIFICATION

MEASURES = ("ece", "adaptive_ece", "nll", "scaled_nll", "brier")


def _claim(data: str, other: str) -> View:
    words = f"BatchEnsemble is better calibrated than {other} on {data}."
    return lower("ece", on(data, BATCH), on(data, other), words)


CALIBRATION = Experiment(
    id="cifar-calibration",
    item='Table "Expected Calibration Error"',
    claim="BatchEnsemble is better calibrated than a single network and MC-dropout.",
    study=CLASSIFICATION,
    scales=methods(*IN_THE_PAPER, *BEYOND_THE_PAPER, data=(TEN, HUNDRED), single_seeds=4),
    show=(
        comparison("ece", columns="data", title="Expected calibration error"),
        comparison(*MEASURES, rows=("data", "method"), name="calibration", title="Calibration in several measures"),
        *(_claim(data, other) for data in ("CIFAR-10", "CIFAR-100") for other in (SINGLE, DROPOUT)),
        reliability_diagrams(),
    ),
    published=(
        *published("ece", "CIFAR-10", single=3.27, dropout=2.89, batch=2.37, naive=2.32),
        *published("ece", "CIFAR-100", single=9.28, dropout=8.99, batch=8.89, naive=6.82),
    ),
)
