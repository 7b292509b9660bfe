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
        """Returns everything its weights depend on, except the seed, as plain JSON; `method` is the method."""
        ...


@dataclass(frozen=True, eq=False)
class Trained:
    """One trained part of a method, in evaluation mode, and the log of its training."""

    model: nn.Module
    log: list[dict[str, float]]

    @property
    def seconds(self) -> float:
        """How long training took, without the time between an interruption and its resumption."""
        return sum(line["seconds"] for line in self.log)

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def train_part(
    recipe: Trainable,
    part: SeededMethod,
    training: Callable[[], TrainingJob],
    fabric: "Fabric",
    context: Context,
) -> Trained:
    """Returns a part trained in its own folder, now or earlier; `training` builds it anew."""
    folder = weights_folder(context, recipe, part)
    name = f"{settings_of(part.method)['name']}, seed {part.seed}"
    with locked_together(fabric, folder, wait=context.wait):
        job = training()
        log = fit(job, Workplace(fabric, folder, context.progress), name)
    return Trained(job.model.eval(), log)


def weights_folder(context: Context, recipe: Trainable, part: SeededMethod) -> Path:
    """Returns the folder of a part's weights, named by everything they depend on."""
    settings = {**recipe.settings(), "method": settings_of(part.method)}
    return context.work / "weights" / content_key({"recipe": settings, "seed": part.seed})


def predict(
    method: Method, parts: Sequence[Trained], inputs: Iterable[Tensor], fabric: "Fabric", samples: int, seed: int
) -> Prediction:
    """Returns every member's logits `(members, N, classes)` for every row of the inputs, on the CPU.

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


def cost_of(parts: Sequence[Trained], method: Method, epochs: int, samples: int) -> dict[str, Any]:
    """Returns the cost of all parts together, and their mean loss in the last epoch."""
    last = [part.log[-1] for part in parts]
    return {
        "parameters": sum(part.parameters for part in parts),
        "training_seconds": sum(part.seconds for part in parts),
        "epochs": epochs,
        "passes": method.passes(samples),
        "samples": samples,
        "train_loss": sum(line["cross_entropy"] for line in last) / len(last),
    }
