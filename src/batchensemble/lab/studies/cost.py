"""What an ensemble costs at test time: milliseconds, parameters and memory, against its number of members."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from batchensemble.lab.methods.ensembles import BatchEnsemble, Method, Naive, Single
from batchensemble.lab.models import resnet
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run
from batchensemble.lab.studies.speed.timing import keep_the_heap
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


@dataclass(frozen=True, eq=False)
class Asked:
    """An ensemble and a batch: what is timed, how many parameters answer, and the memory that it takes on a GPU."""

    ask: Callable[[], Tensor]
    parameters: float
    memory: float


def run(run: Run, context: Context) -> Record:
    """Measures every kind of ensemble at every size, relative to one network on the same images.

    Raises:
        ValueError: other work shares the machine.
    """
    if context.shared:
        raise ValueError("cost is a matter of time: it needs the machine for itself, and no --shared")
    began = time.time()
    settings = Settings(**{**run.settings, "members": tuple(run.settings["members"])})
    fabric = start_fabric(context.device, 1, settings.precision)
    keep_the_heap()
    one = asked(Single(), settings, fabric)
    single, _ = measure(one, one, settings, fabric)
    context.progress.start("cost", len(KINDS) * len(settings.members))
    rows = []
    for kind, make in KINDS.items():
        for members in settings.members:
            cost, beside = measure(asked(make(members), settings, fabric), one, settings, fabric)
            relative = {f"relative_{name}": value / beside[name] for name, value in cost.items() if beside[name]}
            rows.append({"kind": kind, "members": members, **cost, **relative})
            context.progress.advance()
    context.progress.end()
    metrics = {"single": single, "cost": rows}
    return Record(run, metrics, Provenance.now(hardware(fabric.device), since=began))


def asked(method: Method, settings: Settings, fabric: "Fabric") -> Asked:
    """An untrained ensemble, and a batch of noise: neither changes what it takes."""
    device = fabric.device
    others = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
    network = partial(resnet, settings.depth, settings.width, settings.classes)
    models = [on_device(part.method.build(network, part.seed).eval(), device) for part in method.parts(0)]
    images = torch.randn(settings.batch, 3, 32, 32, generator=torch.Generator().manual_seed(0)).to(device)
    ask: Callable[[], Tensor] = partial(method.logits, models, images, 1)
    if device.type == "cuda":
        torch.compiler.reset()  # every ensemble is compiled anew, however many came before
        images = images.contiguous(memory_format=torch.channels_last)
        ask = torch.compile(partial(method.logits, models, images, 1), dynamic=False)
    with torch.no_grad(), fabric.autocast():
        memory = peak_memory(ask, device) - others
    return Asked(ask, float(sum(map(_size, models))), memory)


def measure(ensemble: Asked, one: Asked, settings: Settings, fabric: "Fabric") -> list[dict[str, float]]:
    """Seconds to classify a batch, parameters, and on a GPU the most memory: of an ensemble, and of one network.

    They take turns: a machine is not the same from one minute to the next.
    """
    both = (ensemble, one)
    with torch.no_grad(), fabric.autocast():
        seconds = median_seconds([each.ask for each in both], settings.repeats, fabric.device)
    return [
        {"seconds": took, "parameters": each.parameters, "memory": each.memory}
        for each, took in zip(both, seconds, strict=True)
    ]


def median_seconds(works: Sequence[Callable[[], Tensor]], repeats: int, device: torch.device) -> list[float]:
    """The median time of each of some works that take turns, after two rounds to get warm."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats + 2):
        for work, took in zip(works, times, strict=True):
            began = time.perf_counter()
            work()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            took.append(time.perf_counter() - began)
    return [statistics.median(took[2:]) for took in times]


def peak_memory(work: Callable[[], Tensor], device: torch.device) -> float:
    """The most bytes that were in use while some work was done again; zero without a GPU, which counts them."""
    if device.type != "cuda":
        return 0.0
    work()  # what compiles takes memory once
    torch.cuda.reset_peak_memory_stats(device)
    work()
    return float(torch.cuda.max_memory_allocated(device))


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


COST = Study("cost", run)
