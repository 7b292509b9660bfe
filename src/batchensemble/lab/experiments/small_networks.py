"""A naive ensemble of smaller networks: is the same memory better spent that way?"""

from batchensemble.lab.experiments.classifiers import (
    BATCH,
    DROPOUT,
    HUNDRED,
    NAIVE_SMALL,
    SINGLE,
    TEN,
    methods,
    on,
    published,
)
from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.report.views import View, comparison, higher, ratio
from batchensemble.lab.studies.classification import CLASSIFICATION


def _claims(data: str) -> tuple[View, ...]:
    ours, small = on(data, BATCH), on(data, NAIVE_SMALL)
    return (
        higher("accuracy", ours, small, f"BatchEnsemble is more accurate than small networks on {data}."),
        ratio(
            "parameters",
            small,
            ours,
            f"The small networks are about 10 % larger in all ({data}).",
            at_most=1.15,
            counted=True,
        ),
    )


SMALL_NETWORKS = Experiment(
    id="cifar-small-networks",
    item='Table "Supplementary result": naive ensemble of four ResNet-14x4',
    claim="With roughly the same memory (the paper says 10 % more) BatchEnsemble beats a naive ensemble of small "
    "networks. The true ratio is 1.49: four ResNet-14x4 have 11.1 million parameters, BatchEnsemble has 7.5.",
    study=CLASSIFICATION,
    scales=methods(SINGLE, DROPOUT, BATCH, NAIVE_SMALL, data=(TEN, HUNDRED)),
    show=(
        comparison("accuracy", columns="data", title="Accuracy beside small networks"),
        comparison("accuracy", "ece", "parameters", "passes", rows=("data", "method"), name="size", title="Size"),
        *_claims("CIFAR-10"),
        *_claims("CIFAR-100"),
    ),
    published=(
        *published("accuracy", "CIFAR-10", single=95.31, dropout=95.72, batch=95.94, naive_small=95.59),
        *published("accuracy", "CIFAR-100", single=78.32, dropout=78.89, batch=80.32, naive_small=79.09),
    ),
)
