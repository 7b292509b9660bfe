"""What ten tasks cost on LeNet, relative to fine-tuning one network."""

from dataclasses import replace

from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.experiments.lifelong_methods import BATCH, DEN, PNN, RCL, VANILLA, grids
from batchensemble.lab.methods import lifelong as methods
from batchensemble.lab.records import Published, Scale
from batchensemble.lab.report.quantity import Quantity
from batchensemble.lab.report.views import bars, comparison, lower, relative_to
from batchensemble.lab.studies.lifelong import LIFELONG, Settings

LENET = Settings(network="lenet", classes=10, tasks=10, epochs=20, lr=0.02)
SETTINGS: dict[Scale, Settings] = {
    "paper": LENET,
    "small": replace(LENET, share=0.4, epochs=6),
    "smoke": replace(LENET, data="figures", tasks=3, epochs=1, batch=32),
}
COMPUTE = Quantity("relative_operations", "compute, vanilla = 1", digits=2, better="lower")
TIME = Quantity("relative_processor_seconds", "time, vanilla = 1", digits=2, better="lower")
MEMORY = Quantity("relative_parameters", "memory, vanilla = 1", digits=2, better="lower")
KEPT = Quantity("relative_numbers_kept", "memory to learn on, vanilla = 1", digits=2, better="lower")
OPERATIONS = Quantity("operations", "training compute", "TFLOP", 1e-12, better="lower")
METRICS = ("operations", "processor_seconds", "parameters", "numbers_kept")


def _fewer_trials(settings: Settings) -> Settings:
    """Give RCL five trials per task instead of fifty, so that the smaller scales finish."""
    return replace(settings, method=methods.RCL(trials=5)) if settings.method == methods.RCL() else settings


def _published(metric: str, **values: float) -> tuple[Published, ...]:
    names = {"batch": BATCH, "den": DEN, "pnn": PNN, "rcl": RCL, "vanilla": VANILLA}
    return tuple(Published({"method": names[key]}, metric, value) for key, value in values.items())


LIFELONG_COST = Experiment(
    id="lifelong-cost",
    item='Table "Computational and memory costs on Split-CIFAR100 on LeNet"',
    claim="Relative to fine-tuning, BatchEnsemble costs 1.11 in compute and 1.10 in memory, less than DEN (9.58 and "
    "5.31), PNN (1.12 and 4.16) and RCL (26.41 and 2.52). The paper measured BatchEnsemble and PNN and took the others "
    "from another paper; here all are measured: operations by torch's counter, which leaves element-wise products out, "
    "processor time, and parameters after the last task (to learn on, RCL also keeps its controller). Our PNN has "
    "columns of full width; DEN and RCL are made by their papers' descriptions. Below the paper's scale RCL has 5 "
    "trials per task instead of 50.",
    study=LIFELONG,
    scales=grids(SETTINGS, VANILLA, BATCH, DEN, PNN, RCL, small=_fewer_trials, smoke=_fewer_trials),
    show=(
        relative_to(
            comparison(COMPUTE, TIME, MEMORY, KEPT, "average_accuracy", "forgetting", title="Ten tasks on LeNet"),
            METRICS,
            to=VANILLA,
        ),
        relative_to(bars(COMPUTE, TIME, MEMORY, log=True, title="Ten tasks on LeNet"), METRICS, to=VANILLA),
        lower("parameters", {"method": BATCH}, {"method": PNN}, "Less memory than progressive networks.", counted=True),
        lower(OPERATIONS, {"method": BATCH}, {"method": PNN}, "Less compute than progressive networks.", counted=True),
        lower(OPERATIONS, {"method": BATCH}, {"method": DEN}, "Less compute than DEN."),
        lower(OPERATIONS, {"method": BATCH}, {"method": RCL}, "Less compute than RCL."),
    ),
    published=(
        *_published("relative_operations", vanilla=1, batch=1.11, den=9.58, pnn=1.12, rcl=26.41),
        *_published("relative_parameters", vanilla=1, batch=1.10, den=5.31, pnn=4.16, rcl=2.52),
    ),
)
