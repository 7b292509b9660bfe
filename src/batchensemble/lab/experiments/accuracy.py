"""Accuracy on CIFAR-10 and CIFAR-100."""

from batchensemble.lab.experiments.classifiers import (
    BATCH,
    BEYOND_THE_PAPER,
    DROPOUT,
    HUNDRED,
    IN_THE_PAPER,
    LARGE,
    MEAN,
    NAIVE,
    SINGLE,
    TEN,
    methods,
    on,
    published,
)
from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.report.views import View, comparison, higher, no_worse, on_a_par, ratio, training_curves
from batchensemble.lab.studies.classification import CLASSIFICATION

DETAILS = ("accuracy", "nll", "train_accuracy", "train_loss", "training_seconds", "parameters")


def _claims(data: str) -> tuple[View, ...]:
    ours, naive = on(data, BATCH), on(data, NAIVE)
    return (
        higher("accuracy", ours, on(data, SINGLE), f"BatchEnsemble is more accurate than one network on {data}."),
        higher("accuracy", ours, on(data, DROPOUT), f"BatchEnsemble is more accurate than MC-dropout on {data}."),
        on_a_par(
            "accuracy", on(data, MEAN), ours, f"Both decays do equally well on {data} (half a point).", within=0.005
        ),
        no_worse(
            "accuracy", on(data, LARGE), ours, f"A larger batch does as well on {data} (half a point).", within=0.005
        ),
        ratio("training_seconds", ours, naive, f"It trains faster than four networks in turn on {data}.", at_most=1.0),
    )


ACCURACY = Experiment(
    id="cifar-accuracy",
    item='Table "Validation accuracy on ResNet32"',
    claim="BatchEnsemble is more accurate than a single network and MC-dropout, and below the naive ensemble, which "
    "takes four trainings one after another; both weight decays work equally well, and so does a larger batch.",
    study=CLASSIFICATION,
    scales=methods(*IN_THE_PAPER, MEAN, LARGE, *BEYOND_THE_PAPER, data=(TEN, HUNDRED), single_seeds=4),
    show=(
        comparison("accuracy", columns="data", title="Accuracy on the test set"),
        comparison(*DETAILS, rows=("data", "method"), name="training", title="Accuracy, training and size"),
        *_claims("CIFAR-10"),
        *_claims("CIFAR-100"),
        training_curves("cross_entropy", "accuracy"),
    ),
    published=(
        *published("accuracy", "CIFAR-10", single=95.31, dropout=95.72, batch=95.94, naive=96.30),
        *published("accuracy", "CIFAR-100", single=78.32, dropout=78.89, batch=80.32, naive=81.02),
    ),
)
