"""How costs grow over a hundred tasks and a thousand."""

from dataclasses import replace

from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.experiments.lifelong_methods import BATCH, PNN, SEPARATE, grids
from batchensemble.lab.methods import lifelong as methods
from batchensemble.lab.records import Scale
from batchensemble.lab.report.quantity import Quantity
from batchensemble.lab.report.views import comparison, over_steps, ratio
from batchensemble.lab.studies.lifelong import LIFELONG, Settings

MANY = Settings(network="lenet", classes=5, tasks=1000, epochs=20, lr=0.02, ask="new")
SETTINGS: dict[Scale, Settings] = {
    "paper": MANY,
    "small": replace(MANY, share=0.1, epochs=2),
    "smoke": replace(MANY, data="figures", tasks=12, epochs=1, batch=16),
}
TASKS = Quantity("tasks", "tasks", digits=0)
KEPT = Quantity("growth_numbers_kept", "numbers kept", digits=0, better="lower")
TIME = Quantity("growth_processor_seconds", "processor time of a task", "s", better="lower")
COMPUTE = Quantity("growth_operations", "operations of a task", better="lower")


def _to_a_hundred(settings: Settings) -> Settings:
    """Stop PNN at a hundred tasks, since its costs grow with the square of their number."""
    return replace(settings, tasks=min(100, settings.tasks)) if settings.method == methods.PNN() else settings


LIFELONG_GROWTH = Experiment(
    id="lifelong-growth",
    item="Beyond the paper: memory and time of a task against the number of tasks, up to a thousand",
    claim='"BatchEnsemble leads to more lower costs on large lifelong learning tasks", and progressive networks are '
    '"not capable of learning 100 sequential tasks due to the significant memory consumption". Every task has five '
    "random classes; every twenty tasks all classes are dealt anew. PNN stops at a hundred. Below the paper's scale a "
    "task is trained for a few steps only: this is about costs, not about accuracies.",
    study=LIFELONG,
    scales=grids(SETTINGS, BATCH, PNN, SEPARATE, paper=_to_a_hundred, small=_to_a_hundred),
    show=(
        over_steps(KEPT, x="growth_tasks", xlabel="tasks", log=True, name="memory", title="Numbers stored"),
        over_steps(TIME, x="growth_tasks", xlabel="tasks", log=True, name="time", title="Time per task"),
        over_steps(COMPUTE, x="growth_tasks", xlabel="tasks", log=True, name="compute", title="Operations per task"),
        comparison(TASKS, "numbers_kept", "processor_seconds"),
        ratio(
            "numbers_kept",
            {"method": SEPARATE},
            {"method": BATCH},
            "Separate networks store far more than BatchEnsemble.",
            at_least=5,
            counted=True,
        ),
    ),
)
