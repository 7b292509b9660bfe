"""Predictive entropy on classes that the networks were trained on and on classes that they have never seen."""

from batchensemble.lab.experiments.classifiers import (
    BATCH,
    IN_THE_PAPER,
    NAIVE,
    OWN_NORMS_RELEASED,
    REPEATED,
    REPEATED_OWN_NORMS,
    SINGLE,
    SINGLE_RELEASED,
    methods,
)
from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.report.views import View, comparison, entropy_histograms, higher
from batchensemble.lab.studies.classification import CLASSIFICATION


def _claim(name: str) -> View:
    words = f"{name}: less confident on unseen classes than a single network."
    return higher("entropy_unknown", {"method": name}, {"method": SINGLE}, words)


UNSEEN_CLASSES = Experiment(
    id="cifar-unseen",
    item="Figure: histogram of the predictive entropy, CIFAR-10 (known) and CIFAR-100 (unknown)",
    claim="A single network is overconfident on classes it has never seen; ensembles of both kinds are less so.",
    study=CLASSIFICATION,
    scales=methods(*IN_THE_PAPER, REPEATED, REPEATED_OWN_NORMS, SINGLE_RELEASED, OWN_NORMS_RELEASED, test="unseen"),
    show=(
        entropy_histograms(),
        comparison(
            "auroc", "aupr", "fpr95", "entropy_known", "entropy_unknown", title="Detecting unseen classes by entropy"
        ),
        *(_claim(name) for name in (BATCH, NAIVE)),
    ),
)
