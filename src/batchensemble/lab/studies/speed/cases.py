"""What is measured, and the denominators it is divided by."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

import batchensemble as be
from batchensemble.lab.studies.speed.networks import NETWORKS, Network
from batchensemble.lab.studies.speed.timing import Make, Work
from batchensemble.lab.studies.speed.ways import OURS, WAYS
from batchensemble.lab.studies.speed.work import both_ways, inference, number_type, routing, training

LIMIT = "the plain network on as many rows"
SINGLE = "one network on the same inputs"


@dataclass(frozen=True)
class Settings:
    """What to measure.

    Args:
        network: one of `NETWORKS`.
        members: members of every ensemble.
        inputs: batch sizes for inference, where every member answers every input.
        rows: batch sizes for a training step, split over the members (independent networks each train on all rows).
        layers: `(members, rows of each, width)` of linear layers measured on their own, forward and backward.
        routed: rows and members of batches in which every row names its member.
        repeats: repetitions of every measurement; the median counts.
        compiled: whether to use `torch.compile`; by default only on a GPU, since compiling for a CPU takes minutes.
        only: measure only cases whose names contain one of these; empty for all.
        ways: names of the ways to build an ensemble; empty for all.
    """

    network: str = "resnet32x4"
    members: int = 4
    inputs: tuple[int, ...] = (8, 128, 512)
    rows: tuple[int, ...] = (128, 512, 1024)
    layers: tuple[tuple[int, int, int], ...] = ((4, 4096, 1024), (4, 16384, 1024), (32, 256, 512))
    routed: tuple[int, int] = (1024, 1000)
    repeats: int = 30
    compiled: bool | None = None
    only: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if unknown := set(self.ways) - set(WAYS):
            raise ValueError(f"ways must be among {', '.join(WAYS)}; got {', '.join(sorted(unknown))}")
        if self.network not in NETWORKS:
            raise ValueError(f"network must be one of {', '.join(NETWORKS)}; got {self.network!r}")
        sizes = {"members": (self.members,), "repeats": (self.repeats,), "inputs": self.inputs, "rows": self.rows}
        sizes |= {"layers": tuple(size for layer in self.layers for size in layer), "routed": self.routed}
        for name, numbers in sizes.items():
            if min(numbers, default=1) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}")
        for rows in self.rows:
            if rows % self.members:
                raise ValueError(f"rows must be a multiple of {self.members} members for all libraries; got {rows}")


QUICK = Settings("resnet14", inputs=(2,), rows=(8,), layers=((2, 4, 8),), routed=(8, 6), repeats=2)


@dataclass(frozen=True)
class Case:
    """A name, the work of the denominators, and the work of every way to build an ensemble."""

    name: str
    denominators: Mapping[str, Make]
    ways: Mapping[str, Make]


def cases(settings: Settings, device: torch.device) -> list[Case]:
    """The cases that the settings ask for, in the order of the table.

    Raises:
        ValueError: `only` leaves nothing.
    """
    found = [*_inference(settings, device), *_training(settings, device)]
    found += [*_layers(settings, device), *_routing(settings, device)]
    kept = [case for case in found if not settings.only or any(part in case.name for part in settings.only)]
    if not kept:
        raise ValueError(f"no case is called {' or '.join(settings.only)}; there are {_quoted(found)}")
    return kept


def skipped(settings: Settings) -> dict[str, str]:
    """The ways that cannot be measured here, and why."""
    reasons = {name: WAYS[name].why_not(NETWORKS[settings.network]) for name in settings.ways or WAYS}
    return {name: reason for name, reason in reasons.items() if reason}


def _inference(settings: Settings, device: torch.device) -> Iterator[Case]:
    network = NETWORKS[settings.network]
    for count in settings.inputs:
        denominators = {
            LIMIT: _answers(network, device, count * settings.members),
            SINGLE: _answers(network, device, count),
        }
        ways = {name: _answers(network, device, count, name, settings.members) for name in _open(settings)}
        yield Case(f"inference, {count} inputs", denominators, ways)


def _training(settings: Settings, device: torch.device) -> Iterator[Case]:
    network = NETWORKS[settings.network]
    for count in settings.rows:
        denominators = {LIMIT: _steps(network, device, count)}
        ways = {name: _steps(network, device, count, name, settings.members) for name in _open(settings)}
        yield Case(f"training step, {count} rows", denominators, ways)


def _layers(settings: Settings, device: torch.device) -> Iterator[Case]:
    for members, count, width in settings.layers:
        plain, ours = partial(nn.Linear, width, width), partial(be.nn.Linear, width, width, members=members)
        yield Case(
            f"Linear {members} x {count} x {width}",
            {LIMIT: _layer(plain, members * count, width, device)},
            {OURS: _layer(ours, members * count, width, device)},
        )


def _routing(settings: Settings, device: torch.device) -> Iterator[Case]:
    rows, members = settings.routed
    for name in dict.fromkeys(("mlp", settings.network)):
        network = NETWORKS[name]
        yield Case(
            f"routing, {rows} rows to {members} members, {name}",
            {LIMIT: _answers(network, device, rows)},
            {OURS: _routed(network, device, rows, members)},
        )


def _answers(network: Network, device: torch.device, count: int, way: str = "", members: int = 1) -> Make:
    def make(compiled: bool) -> Work:
        return inference(_models(network, way, members), network.inputs(count, device, number_type(device)), compiled)

    return make


def _steps(network: Network, device: torch.device, count: int, way: str = "", members: int = 1) -> Make:
    def make(compiled: bool) -> Work:
        return training(_models(network, way, members), network.inputs(count, device), compiled)

    return make


def _layer(build: Callable[[], nn.Module], rows: int, width: int, device: torch.device) -> Make:
    def make(compiled: bool) -> Work:
        return both_ways(build(), rows, width, device, compiled)

    return make


def _routed(network: Network, device: torch.device, rows: int, members: int) -> Make:
    def make(compiled: bool) -> Work:
        return routing(network, members, network.inputs(rows, device, number_type(device)), compiled)

    return make


def _models(network: Network, way: str, members: int) -> list[nn.Module]:
    """Build the models of a way, or the plain network if no way is named."""
    return WAYS[way].build(network, members) if way else [network.make()]


def _open(settings: Settings) -> list[str]:
    return [name for name in settings.ways or WAYS if name not in skipped(settings)]


def _quoted(found: list[Case]) -> str:
    return ", ".join(f"'{case.name}'" for case in found)
