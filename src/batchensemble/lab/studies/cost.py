"""What an ensemble costs at test time: time, parameters and memory, against the number of members."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from batchensemble.lab.methods.ensembles import BatchEnsemble, Method, Naive, Single
from batchensemble.lab.models import resnet
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run, tupled
from batchensemble.lab.studies.speed.timing import Measure, Work, measure
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.devices import Precision, on_device, start_fabric

if TYPE_CHECKING:
    from lightning_fabric import Fabric

KINDS: dict[str, Callable[[int], Method]] = {
    "BatchEnsemble": BatchEnsemble,
    "Naive, one by one": Naive,
    "Naive, at once": partial(Naive, together=True),
}


@dataclass(frozen=True)
class Settings:
    """What to measure.

    Args:
        members: ensemble sizes.
        batch: images classified at once.
        repeats: repetitions of every measurement; the median counts.
        depth: depth of the ResNet.
        width: width of the ResNet.
        classes: outputs of its head.
        precision: precision of the multiplications.
    """

    members: tuple[int, ...] = (1, 2, 4, 8, 16)
    batch: int = 128
    repeats: int = 30
    depth: int = 32
    width: int = 4
    classes: int = 10
    precision: Precision = "bf16"


@dataclass(eq=False)
class Classify:
    """The work to time: an untrained ensemble classifies a batch of noise, at the same cost as a trained one on images.

    Attributes:
        parameters: number of parameters of all its networks, once they are built.
    """

    method: Method
    settings: Settings
    fabric: "Fabric"
    parameters: float = 0.0

    def __call__(self, compiled: bool) -> Work:
        """Build the networks and the images, and return the work of classifying them."""
        settings, device = self.settings, self.fabric.device
        network = partial(resnet, settings.depth, settings.width, settings.classes)
        parts = self.method.parts(0)
        models = [on_device(part.method.build(network, part.seed).eval(), device) for part in parts]
        images = torch.randn(settings.batch, 3, 32, 32, generator=torch.Generator().manual_seed(0)).to(device)
        if device.type == "cuda":
            images = images.contiguous(memory_format=torch.channels_last)
        self.parameters = float(sum(parameter.numel() for model in models for parameter in model.parameters()))
        ask = partial(self.method.logits, models, images, 1)
        return self._without_gradients(torch.compile(ask, dynamic=False) if compiled else ask)

    def _without_gradients(self, ask: Work) -> Work:
        def classify() -> Any:
            with torch.no_grad(), self.fabric.autocast():
                return ask()

        return classify


def run(run: Run, context: Context) -> Record:
    """Measure every kind of ensemble at every size, each beside one network on the same images."""
    began = time.time()
    settings = Settings(**tupled(run.settings))
    fabric = start_fabric(context.device, 1, settings.precision)
    single, _ = compare(Single(), settings, fabric)
    context.progress.start("cost", len(KINDS) * len(settings.members))
    rows = []
    for kind, make in KINDS.items():
        for members in settings.members:
            cost, beside = compare(make(members), settings, fabric)
            relative = {f"relative_{name}": value / beside[name] for name, value in cost.items() if beside[name]}
            rows.append({"kind": kind, "members": members, **cost, **relative})
            context.progress.advance()
    context.progress.end()
    metrics = {"single": single, "cost": rows}
    return Record(run, metrics, Provenance.now(hardware(fabric.device), since=began))


def compare(method: Method, settings: Settings, fabric: "Fabric") -> list[dict[str, float]]:
    """Seconds per batch, parameters and, on a GPU, peak memory of an ensemble and of one network.

    Raises:
        ValueError: one of them does not fit in memory.
    """
    works = {"ensemble": Classify(method, settings, fabric), "one network": Classify(Single(), settings, fabric)}
    found = measure(works, fabric.device, settings.repeats, compiled=fabric.device.type == "cuda")
    return [_cost(work, found[name]) for name, work in works.items()]


def _cost(work: Classify, found: Measure | None) -> dict[str, float]:
    if found is None:
        raise ValueError(f"{work.method} does not fit in memory")
    return {"seconds": found.ms / 1000, "parameters": work.parameters, "memory": (found.mib or 0.0) * 2**20}


COST = Study("cost", run, timed=True)
