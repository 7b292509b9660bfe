"""Expected calibration error of the networks whose accuracy the first table gives."""

from batchensemble.lab.experiments.classifiers import BATCH, DROPOUT, HUNDRED, NAIVE, SINGLE, TEN, methods, published
from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.studies.classification import CLASSIFICATION

CALIBRATION = Experiment(
    id="cifar-calibration",
    item='Table "Expected Calibration Error"',
    claim="BatchEnsemble is better calibrated than a single network and MC-dropout.",
    study=CLASSIFICATION,
    scales=methods(SINGLE, DROPOUT, BATCH, NAIVE, data=(TEN, HUNDRED), single_seeds=4),
    published=(
        *published("ece", "CIFAR-10", single=3.27, dropout=2.89, batch=2.37, naive=2.32),
        *published("ece", "CIFAR-100", single=9.28, dropout=8.99, batch=8.89, naive=6.82),
    ),
)
