"""Accuracy on CIFAR-10 and CIFAR-100."""

from batchensemble.lab.experiments.classifiers import (
    BATCH,
    DROPOUT,
    HUNDRED,
    LARGE,
    MEAN,
    NAIVE,
    REPEATED,
    SINGLE,
    TEN,
    methods,
    published,
)
from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.studies.classification import CLASSIFICATION

ACCURACY = Experiment(
    id="cifar-accuracy",
    item='Table "Validation accuracy on ResNet32"',
    claim="BatchEnsemble is more accurate than a single network and MC-dropout, and below the naive ensemble, which "
    "takes four trainings one after another; both weight decays work equally well, and so does a larger batch.",
    study=CLASSIFICATION,
    scales=methods(SINGLE, DROPOUT, BATCH, NAIVE, MEAN, LARGE, REPEATED, data=(TEN, HUNDRED), single_seeds=4),
    published=(
        *published("accuracy", "CIFAR-10", single=95.31, dropout=95.72, batch=95.94, naive=96.30),
        *published("accuracy", "CIFAR-100", single=78.32, dropout=78.89, batch=80.32, naive=81.02),
    ),
)
