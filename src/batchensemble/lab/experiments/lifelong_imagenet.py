"""Split-ImageNet: a hundred tasks of ten classes."""

from dataclasses import replace

from batchensemble.lab.experiments.experiment import Experiment
from batchensemble.lab.experiments.lifelong_methods import BATCH, BN_TUNED, SEPARATE, grids
from batchensemble.lab.records import Published, Scale
from batchensemble.lab.report.quantity import Quantity
from batchensemble.lab.report.views import comparison, higher, over_steps
from batchensemble.lab.studies.lifelong import LIFELONG, Settings

IMAGENET = Settings(
    data="imagenet",
    classes=10,
    tasks=100,
    network="resnet50",
    epochs=60,
    batch=128,
    lr=0.1,
    weight_decay=1e-4,
    precision="bf16",
    ask="new",
    workers=12,
)
SETTINGS: dict[Scale, Settings] = {
    "paper": IMAGENET,
    "small": replace(IMAGENET, data="tiny-imagenet", tasks=20, network="resnet18", epochs=20, batch=32, workers=4),
    "smoke": replace(IMAGENET, data="figures", tasks=3, filters=4, epochs=1, batch=32, precision="fp32", workers=0),
}
ACCURACY = Quantity("task_accuracy", "accuracy", "%", 100.0, 1, "higher")

LIFELONG_IMAGENET = Experiment(
    id="lifelong-imagenet",
    item='Figure "Performance for lifelong learning" (a): accuracy on every task of Split-ImageNet',
    claim="BatchEnsemble scales to 100 tasks with 30 instead of 25 million parameters and is better than BN-tuned on "
    "every task. BN-tuned needs no wider network to be as large: a task's scales and shifts (53,120) are about as many "
    "as its r and s (49,091). Pictures lie in the usual folders; the paper gives neither epochs nor learning rate.",
    study=LIFELONG,
    scales=grids(SETTINGS, BATCH, BN_TUNED, SEPARATE, seeds={"paper": 5}),
    show=(
        over_steps(ACCURACY, xlabel="task", name="tasks", title="Accuracy on every task"),
        comparison("average_accuracy", "parameters", "training_seconds"),
        higher("average_accuracy", {"method": BATCH}, {"method": BN_TUNED}, "Better than tuning batch norms."),
    ),
    published=(Published({"method": BATCH}, "parameters", 30e6),),
)
