"""Calibration and accuracy on corrupted images."""

from collections.abc import Mapping
from typing import Any

from batchensemble.lab.experiments.classifiers import (
    BATCH,
    BOTH,
    DROPOUT,
    NAIVE,
    OWN_NORMS_RELEASED,
    REPEATED,
    REPEATED_OWN_NORMS,
    SINGLE,
    SINGLE_RELEASED,
    TEN,
    row,
)
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.records import SCALES, Scale
from batchensemble.lab.report import Quantity
from batchensemble.lab.report.views import by_severity, comparison, lower, no_better, no_worse
from batchensemble.lab.studies.classification import CLASSIFICATION

SOME: Mapping[Scale, Mapping[str, Any]] = {
    "small": {"rows": 1000},
    "smoke": {"rows": 10, "corruptions": ("gaussian_noise", "fog", "contrast")},
}
"""What the smaller scales are measured on: some of the images, some of the corruptions."""


def _rows(scale: Scale) -> tuple[Row, ...]:
    test = {"test": "corruptions", **SOME.get(scale, {})}
    return (
        row(SINGLE, scale, TEN[scale], **test),
        row(NAIVE, scale, TEN[scale], **test),
        _sampled(DROPOUT, scale, 8, test),
        row(BATCH, scale, TEN[scale], **test),
        row(REPEATED, scale, TEN[scale], **test),
        row(REPEATED_OWN_NORMS, scale, TEN[scale], **test),
        row(SINGLE_RELEASED, scale, TEN[scale], **test),
        row(OWN_NORMS_RELEASED, scale, TEN[scale], **test),
        _sampled(BOTH, scale, 8, test),
        _sampled(DROPOUT, scale, 128, test),
    )


def _sampled(name: str, scale: Scale, samples: int, test: dict[str, object]) -> Row:
    made = row(name, scale, TEN[scale], **test, samples=samples)
    return Row({**made.labels, "method": f"{name}-{samples}"}, made.settings)


ACCURACY = Quantity("corrupted_accuracy", "accuracy, corrupted", "%", 100.0, 2, "higher")
ECE = Quantity("corrupted_ece", "ECE, corrupted", "%", 100.0, 2, "lower")
NLL = Quantity("corrupted_nll", "NLL, corrupted", digits=3, better="lower")

OURS, OURS_EIGHT, ALL = {"method": BATCH}, {"method": f"{BOTH}-8"}, {"method": NAIVE}
EIGHT, MANY = {"method": f"{DROPOUT}-8"}, {"method": f"{DROPOUT}-128"}


CORRUPTION = Experiment(
    id="cifar-corruption",
    item="Figure: calibration on CIFAR-10 corruptions, box plots by severity",
    claim="Under corruption BatchEnsemble is as accurate as dropout and better calibrated the stronger it is; with "
    "dropout on top it rivals the naive ensemble; 128 samples of dropout are no better than 8.",
    study=CLASSIFICATION,
    scales={scale: Grid(_rows(scale)) for scale in SCALES},
    show=(
        by_severity("ece", "accuracy"),
        comparison(ACCURACY, ECE, NLL, "passes", title="Means over all corruptions and severities"),
        no_worse(ACCURACY, OURS, EIGHT, "It is as accurate as dropout under corruption (within a point).", within=0.01),
        lower(ECE, OURS, EIGHT, "It is better calibrated than dropout under corruption."),
        no_worse(
            ECE, OURS_EIGHT, ALL, "With dropout on top it is as well calibrated as the naive ensemble.", within=0.01
        ),
        no_better(ECE, MANY, EIGHT, "128 samples are no better than 8 (within half a point).", within=0.005),
    ),
)
