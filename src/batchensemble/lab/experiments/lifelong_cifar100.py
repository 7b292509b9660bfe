"""Split-CIFAR100: twenty tasks of five classes, and what remains of the first once the last is learned."""

from dataclasses import replace

from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.experiments.lifelong_methods import (
    BATCH,
    BN_TUNED,
    EWC,
    FROM_FIRST,
    FROM_SIMILAR,
    FROZEN_NORM,
    LATERALS,
    OWN_NORM,
    OWN_NORM_4,
    OWN_NORM_16,
    PNN,
    RANK_4,
    SEPARATE,
    VANILLA,
    grids,
)
from batchensemble.lab.methods import lifelong as methods
from batchensemble.lab.records import Scale
from batchensemble.lab.report.quantity import Quantity
from batchensemble.lab.report.views import bars, comparison, heatmaps, higher, lower, no_worse, over_steps, ratio
from batchensemble.lab.studies.lifelong import LIFELONG, Settings

SETTINGS: dict[Scale, Settings] = {
    "paper": Settings(),
    "small": Settings(epochs=10, batch=128, lr=0.1),
    "smoke": Settings(data="figures", classes=10, tasks=3, filters=4, epochs=1, batch=64),
}
KEPT = Quantity("numbers_kept", "numbers kept", "millions", 1e-6, 2, "lower")
COMPUTE = Quantity("operations", "training compute", "TFLOP", 1e-12, better="lower")
SEEN = Quantity("seen_accuracy", "accuracy over tasks so far", "%", 100.0, 1, "higher")
MATRIX = Quantity("matrix", "accuracy", "%", 100.0, 0, "higher")


def _quick_fisher(settings: Settings) -> Settings:
    """Estimate EWC's Fisher information from a few rows."""
    return replace(settings, method=methods.EWC(rows=16)) if settings.method == methods.EWC() else settings


OURS, THEIRS = {"method": BATCH}, {"method": PNN}

LIFELONG_CIFAR100 = Experiment(
    id="lifelong-cifar100",
    item='Figure "Performance for lifelong learning" (b): accuracy, forgetting, time and memory on Split-CIFAR100',
    claim="BatchEnsemble is as accurate as progressive networks, forgets nothing, and is 4 times faster with 50 times "
    "less memory. Speed is judged by the operations that torch counts, element-wise products left out, because "
    "trainings may have shared a GPU. BN-tuned and separate networks are our additions. The paper gives neither epochs "
    "nor learning rate: 50 and 0.05 are ours.",
    study=LIFELONG,
    scales=grids(SETTINGS, VANILLA, EWC, PNN, BATCH, BN_TUNED, SEPARATE, seeds={"paper": 5}, smoke=_quick_fisher),
    show=(
        bars("average_accuracy", "forgetting", COMPUTE, "training_seconds", KEPT, title="After twenty tasks"),
        comparison("average_accuracy", "forgetting", COMPUTE, "training_seconds", "parameters", KEPT),
        over_steps(SEEN, xlabel="tasks learnt", name="seen", title="Accuracy over all tasks so far"),
        heatmaps(MATRIX, title="Accuracy on every task after every task"),
        no_worse("average_accuracy", OURS, THEIRS, "As accurate as progressive networks.", within=0.02),
        higher("average_accuracy", OURS, {"method": EWC}, "More accurate than EWC."),
        lower("forgetting", OURS, {"method": VANILLA}, "Forgets less than fine-tuning."),
        ratio(
            COMPUTE,
            THEIRS,
            OURS,
            "4 times less compute than progressive networks, the paper: 4 times faster.",
            at_least=4,
            counted=True,
        ),
        ratio(KEPT, THEIRS, OURS, "50 times less memory than progressive networks.", at_least=50, counted=True),
    ),
)

LIFELONG_OPTIONS = Experiment(
    id="lifelong-options",
    item="Beyond the paper: what its stated limits of rank one and of sharing the first task's weights cost",
    claim='The paper finds rank one enough and lateral connections unneeded on Split-CIFAR100. "From the first task" '
    "begins r and s as the first task's instead of as random signs; so do all below it but the next.",
    study=LIFELONG,
    scales=grids(
        SETTINGS,
        *(BATCH, FROM_FIRST, FROM_SIMILAR, FROZEN_NORM, OWN_NORM, RANK_4, OWN_NORM_4, OWN_NORM_16, LATERALS),
        seeds={"paper": 5},
    ),
    show=(
        comparison("average_accuracy", "train_accuracy", COMPUTE, "parameters"),
        bars("average_accuracy", "train_accuracy", title="Options of the learner"),
        higher(
            "average_accuracy",
            {"method": FROM_SIMILAR},
            OURS,
            "Beginning as the most similar task transfers forward: better than beginning as random signs.",
        ),
    ),
)
