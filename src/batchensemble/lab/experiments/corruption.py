"""Calibration and accuracy on corrupted images."""

from batchensemble.lab.experiments.classifiers import BATCH, BOTH, DROPOUT, NAIVE, SINGLE, TEN, row
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.records import SCALES, Scale
from batchensemble.lab.studies.classification import CLASSIFICATION

QUICK = ("gaussian_noise", "defocus_blur", "fog", "contrast")  # one of every kind, where seconds count


def _rows(scale: Scale) -> tuple[Row, ...]:
    some = {"corruptions": QUICK, "rows": 40} if scale == "smoke" else {"rows": 1000} if scale == "small" else {}
    test = {"test": "corruptions", **some}
    return (
        row(SINGLE, scale, TEN[scale], **test),
        row(NAIVE, scale, TEN[scale], **test),
        _sampled(DROPOUT, scale, 8, test),
        row(BATCH, scale, TEN[scale], **test),
        _sampled(BOTH, scale, 8, test),
        _sampled(DROPOUT, scale, 128, test),
    )


def _sampled(name: str, scale: Scale, samples: int, test: dict[str, object]) -> Row:
    made = row(name, scale, TEN[scale], **test, samples=samples)
    return Row({**made.labels, "method": f"{name}-{samples}"}, made.settings)


CORRUPTION = Experiment(
    id="cifar-corruption",
    item="Figure: calibration on CIFAR-10 corruptions, box plots by severity",
    claim="Under corruption BatchEnsemble is as accurate as dropout and better calibrated the stronger it is; with "
    "dropout on top it rivals the naive ensemble; 128 samples of dropout are no better than 8.",
    study=CLASSIFICATION,
    scales={scale: Grid(_rows(scale)) for scale in SCALES},
)
