"""Devices, processes and precision of a training: Lightning Fabric, started once per process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from batchensemble.locks import locked

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["fp64", "fp32", "bf16"]
_NAMES = {"fp64": "64-true", "fp32": "32-true", "bf16": "bf16-mixed"}
# Trainers keep the norms' statistics equal themselves, see synchronise.py. torch 2.13 renamed the option.
_SYNC = "forward_sync_buffers"
_OWN_BUFFERS = {_SYNC if _SYNC in signature(DistributedDataParallel).parameters else "broadcast_buffers": False}


def start_fabric(device: str = "auto", devices: int = 1, precision: Precision = "fp32") -> "Fabric":
    """Launch Fabric; with several devices, the other processes are started by it or by `torchrun`.

    Args:
        device: `auto` (a GPU if there is one), `cpu` or `cuda`.
        devices: number of devices on this machine; `torchrun` sets the number of machines.
        precision: `bf16` keeps weights in fp32 and multiplies in bfloat16.

    Raises:
        ValueError: the device is unknown, or there are not that many of them.

    Examples:
        >>> start_fabric("cpu").world_size
        1
    """
    from lightning_fabric import Fabric
    from lightning_fabric.strategies import DDPStrategy

    kind = device_kind(device, devices)
    local = int(os.environ.get("LOCAL_WORLD_SIZE", devices))  # torchrun takes precedence
    machines = int(os.environ.get("GROUP_WORLD_SIZE", 1))
    fabric = Fabric(
        accelerator=kind,
        devices=local,
        num_nodes=machines,
        strategy=DDPStrategy(**_OWN_BUFFERS) if local * machines > 1 else "auto",
        precision=_NAMES[precision],
    )
    fabric.launch()
    torch.backends.cudnn.benchmark = True  # chosen by timing, convolutions are faster; a training has few shapes
    return fabric


@contextmanager
def locked_together(fabric: "Fabric", path: Path, *, wait: bool) -> Iterator[None]:
    """Lock the work named by `path` for all processes that train together; the first one holds the lock.

    Raises:
        Busy: another training holds the lock, and `wait` is false.
    """
    with locked(path, wait=wait) if fabric.is_global_zero else nullcontext():
        fabric.barrier()  # until the lock is held, its previous holder may still be writing
        yield


def is_one_of_several(devices: int) -> bool:
    """Whether this process is one of several that train together, or will be if it asks for `devices`."""
    return devices > 1 or int(os.environ.get("WORLD_SIZE", 1)) > 1


def device_kind(device: str, devices: int = 1) -> str:
    """Resolve `auto`, `cpu` or `cuda` to `cpu` or `cuda`.

    Raises:
        ValueError: the device is unknown, or there are not that many of them.
    """
    if device not in get_args(Device):
        raise ValueError(f"device must be auto, cpu or cuda; got {device!r}")
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    kind = ("cuda" if there else "cpu") if device == "auto" else device
    if kind == "cuda" and devices > there:
        raise ValueError(f"expected {devices} CUDA device{'s' * (devices > 1)}, found {there or 'none'}")
    if devices < 1:
        raise ValueError(f"devices must be at least 1; got {devices}")
    return kind


def on_device(model: nn.Module, device: torch.device) -> nn.Module:
    """Move the model to its device, on a GPU with kernels in channels-last format, which tensor cores prefer."""
    model = model.to(device)
    if device.type == "cuda":
        for kernel in (parameter for parameter in model.parameters() if parameter.ndim == 4):
            kernel.data = kernel.data.contiguous(memory_format=torch.channels_last)
    return model
