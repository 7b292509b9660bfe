"""Which devices train together, and in which precision: Lightning Fabric, started once per process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from torch.nn.parallel import DistributedDataParallel

from batchensemble.disk import locked

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Precision = Literal["fp64", "fp32", "bf16"]
_NAMES = {"fp64": "64-true", "fp32": "32-true", "bf16": "bf16-mixed"}
# The statistics of norms are kept equal by those who train, see synchronise.py; the option has a new name since 2.13.
_SYNC = "forward_sync_buffers"
_OWN_BUFFERS = {_SYNC if _SYNC in signature(DistributedDataParallel).parameters else "broadcast_buffers": False}


def start_fabric(device: str = "auto", devices: int = 1, precision: Precision = "fp32") -> "Fabric":
    """A started Fabric; with several devices every process but this one is started by it or by `torchrun`.

    Args:
        device: `auto` (a GPU if there is one), `cpu` or `cuda`.
        devices: how many on this machine; `torchrun` decides how many machines.
        precision: `bf16` keeps weights in fp32 and multiplies in bfloat16.

    Raises:
        ValueError: the device or so many of them are not there.

    Examples:
        >>> start_fabric("cpu").world_size
        1
    """
    from lightning_fabric import Fabric
    from lightning_fabric.strategies import DDPStrategy

    kind = device_kind(device, devices)
    local = int(os.environ.get("LOCAL_WORLD_SIZE", devices))  # torchrun's word counts
    machines = int(os.environ.get("GROUP_WORLD_SIZE", 1))
    fabric = Fabric(
        accelerator=kind,
        devices=local,
        num_nodes=machines,
        strategy=DDPStrategy(**_OWN_BUFFERS) if local * machines > 1 else "auto",
        precision=_NAMES[precision],
    )
    fabric.launch()
    return fabric


@contextmanager
def locked_together(fabric: "Fabric", path: Path, *, wait: bool = False) -> Iterator[None]:
    """Holds the work named by `path` for all processes that train together: the first has the lock.

    Raises:
        Busy: processes of another training hold it, and `wait` is false.
    """
    with locked(path, wait=wait) if fabric.is_global_zero else nullcontext():
        fabric.barrier()  # nobody reads what those who had the lock before may still write
        yield


def is_one_of_several(devices: int = 1) -> bool:
    """Whether this process trains together with others, or will, when `devices` are asked for."""
    return devices > 1 or int(os.environ.get("WORLD_SIZE", 1)) > 1


def device_kind(device: str, devices: int = 1) -> str:
    """`cpu` or `cuda` for `auto`, `cpu` or `cuda`.

    Raises:
        ValueError: the device or so many of them are not there.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device must be auto, cpu or cuda; got {device!r}")
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    kind = ("cuda" if there else "cpu") if device == "auto" else device
    if kind == "cuda" and devices > there:
        raise ValueError(f"{devices} CUDA devices were asked for, {there} are there")
    if devices < 1:
        raise ValueError(f"devices must be at least 1; got {devices}")
    return kind
