"""The trainings that a method consists of: each is done once, and found again by whoever asks for the same one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from batchensemble import Prediction
from batchensemble.lab.methods.ensembles import Method, SeededMethod, settings_of
from batchensemble.lab.records import content_key
from batchensemble.lab.studies.study import Context
from batchensemble.lab.training.devices import locked_together
from batchensemble.lab.training.fit import TrainingJob, Workplace, fit
from batchensemble.seeds import seeded

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class Trainable(Protocol):
    """How a method is trained, as a value."""

    def settings(self) -> dict[str, Any]:
        """Everything its weights depend on, except the seed, as plain JSON; `method` is the method."""
        ...


class Part(Protocol):
    """What is known of a part of a method when it is trained, whether or not its weights are still there."""

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        ...

    @property
    def seconds(self) -> float | None:
        """How long training took; `None` if other work shared the machine."""
        ...

    @property
    def loss(self) -> float:
        """The cross-entropy in the last epoch."""
        ...


@dataclass(frozen=True, eq=False)
class TrainedPart:
    """One trained part of a method, in evaluation mode, and the log of its training."""

    model: nn.Module
    log: list[dict[str, float]]

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def seconds(self) -> float:
        """How long training took, without the time between an interruption and its resumption."""
        return sum(line["seconds"] for line in self.log)

    @property
    def loss(self) -> float:
        """The cross-entropy in the last epoch."""
        return self.log[-1]["cross_entropy"]


def train_part(
    recipe: Trainable,
    part: SeededMethod,
    training: Callable[[], TrainingJob],
    fabric: "Fabric",
    context: Context,
) -> TrainedPart:
    """A part trained in its own folder, now or earlier; `training` builds it anew."""
    folder = weights_folder(context, recipe, part)
    name = f"{settings_of(part.method)['name']}, seed {part.seed}"
    with locked_together(fabric, folder, wait=context.wait):
        job = training()
        log = fit(job, Workplace(fabric, folder, context.progress), name)
    return TrainedPart(job.model.eval(), log)


def weights_folder(context: Context, recipe: Trainable, part: SeededMethod) -> Path:
    """The folder of a part's weights, named by everything they depend on."""
    settings = {**recipe.settings(), "method": settings_of(part.method)}
    return context.work / "weights" / content_key({"recipe": settings, "seed": part.seed})


def predict(
    method: Method, parts: Sequence[TrainedPart], inputs: Iterable[Tensor], fabric: "Fabric", samples: int, seed: int
) -> Prediction:
    """Every member's logits `(members, N, classes)` for every row of the inputs, on the CPU.

    Args:
        method: computes the logits of all parts.
        parts: its trained parts.
        inputs: the rows, as many at a time as go through the networks together.
        fabric: their device and precision.
        samples: number of dropout samples, if there is dropout.
        seed: seeds those samples.
    """
    models = [part.model for part in parts]
    with torch.no_grad(), seeded(seed, fabric.device), fabric.autocast():
        logits = [method.logits(models, rows, samples).float().cpu() for rows in inputs]
    return Prediction(torch.cat(logits, dim=1))


def cost_of(parts: Sequence[Part], method: Method, epochs: int, samples: int) -> dict[str, Any]:
    """The cost of all parts together, their times if all are known, and their mean loss in the last epoch."""
    times = [part.seconds for part in parts if part.seconds is not None]
    return {
        "parameters": sum(part.parameters for part in parts),
        **({"training_seconds": sum(times)} if len(times) == len(parts) else {}),
        "epochs": epochs,
        "passes": method.passes(samples),
        "samples": samples,
        "train_loss": sum(part.loss for part in parts) / len(parts),
    }
