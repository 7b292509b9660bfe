"""What an ensemble costs at test time: milliseconds, parameters and memory, against its number of members."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from batchensemble.lab.methods.ensembles import BatchEnsemble, Method, Naive, Single
from batchensemble.lab.models import resnet
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.studies.trainer import on_device
from batchensemble.lab.training.devices import Precision, start_fabric

if TYPE_CHECKING:
    from lightning_fabric import Fabric

KINDS: dict[str, Callable[[int], Method]] = {
    "BatchEnsemble": lambda members: BatchEnsemble(members),
    "Naive, one by one": lambda members: Naive(members),
    "Naive, at once": lambda members: Naive(members, together=True),
}


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Args:
        members: ensemble sizes.
        batch: images that are classified together.
        repeats: of every measurement; the median counts.
        depth: of the ResNet.
        width: of the ResNet.
        classes: of its head.
        precision: of the multiplications.
    """

    members: tuple[int, ...] = (1, 2, 4, 8, 16)
    batch: int = 128
    repeats: int = 30
    depth: int = 32
    width: int = 4
    classes: int = 10
    precision: Precision = "bf16"


def run(run: Run, context: Context) -> Record:
    """Measures every kind of ensemble at every size, relative to one network on the same images."""
    began = time.time()
    settings = Settings(**{**run.settings, "members": tuple(run.settings["members"])})
    fabric = start_fabric(context.device, 1, settings.precision)
    single = measure(Single(), settings, fabric)
    context.progress.start("cost", len(KINDS) * len(settings.members))
    rows = []
    for kind, make in KINDS.items():
        for members in settings.members:
            cost = measure(make(members), settings, fabric)
            relative = {f"relative_{name}": value / single[name] for name, value in cost.items() if single[name]}
            rows.append({"kind": kind, "members": members, **cost, **relative})
            context.progress.advance()
    context.progress.end()
    metrics = {"single": single, "cost": rows}
    return Record(run, metrics, Provenance.now(hardware(fabric.device), since=began))


def measure(method: Method, settings: Settings, fabric: "Fabric") -> dict[str, float]:
    """Seconds to classify a batch, parameters, and on a GPU the most memory that it took."""
    device = fabric.device
    network = partial(resnet, settings.depth, settings.width, settings.classes)
    models = [on_device(part.method.build(network, part.seed).eval(), device) for part in method.parts(0)]
    images = torch.randn(settings.batch, 3, 32, 32, generator=torch.Generator().manual_seed(0)).to(device)
    ask: Callable[[], Tensor] = partial(method.logits, models, images, 1)
    if device.type == "cuda":
        torch.compiler.reset()  # every ensemble is compiled anew, however many came before
        images = images.contiguous(memory_format=torch.channels_last)
        ask = torch.compile(partial(method.logits, models, images, 1), dynamic=False)
    with torch.no_grad(), fabric.autocast():
        seconds = median_seconds(ask, settings.repeats, device)
        memory = peak_memory(ask, device)
    return {"seconds": seconds, "parameters": float(sum(map(_size, models))), "memory": memory}


def median_seconds(work: Callable[[], Tensor], repeats: int, device: torch.device) -> float:
    """The median time of some work, after two rounds to get warm."""
    times: list[float] = []
    for _ in range(repeats + 2):
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - began)
    return statistics.median(times[2:])


def peak_memory(work: Callable[[], Tensor], device: torch.device) -> float:
    """The most bytes that were in use while some work was done; zero without a GPU, which counts them."""
    if device.type != "cuda":
        return 0.0
    torch.cuda.reset_peak_memory_stats(device)
    work()
    return float(torch.cuda.max_memory_allocated(device))


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


COST = Study("cost", run)
