"""How a number was obtained: hardware, versions, commit and time. Every output shows it."""

import os
import platform
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import torch

_PACKAGES = ("batchensemble", "torch", "numpy", "lightning-fabric")
_KINDS: dict[str, Any] = {
    "hardware": str,
    "versions": dict,
    "commit": str | None,
    "dirty": bool,
    "started": str,
    "seconds": int | float,
}
"""Types of the fields of `Provenance`; checked on reading, since anybody may have edited the file."""


@dataclass(frozen=True)
class Provenance:
    """The circumstances of a record.

    Args:
        hardware: the device in words, e.g. `NVIDIA H200` or `2 x Intel Xeon, CPU`.
        versions: versions of Python and of the packages that matter.
        commit: the commit of this project's checkout, or else the environment variable `BATCHENSEMBLE_COMMIT`.
        dirty: whether that checkout had uncommitted changes.
        started: when the run was started for the last time, UTC in ISO 8601.
        seconds: how long it took from there; what it did before an interruption does not count.

    Examples:
        >>> Provenance.now("a laptop").hardware
        'a laptop'
    """

    hardware: str
    versions: dict[str, str] = field(default_factory=dict)
    commit: str | None = None
    dirty: bool = False
    started: str = ""
    seconds: float = 0.0

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Read the provenance of a record, ignoring fields that this version does not know.

        Raises:
            TypeError: `hardware` is missing, or a field has the wrong type.
        """
        known = {one.name for one in fields(cls)}
        found = cls(**{name: value for name, value in content.items() if name in known})
        for name, kind in _KINDS.items():
            if not isinstance(getattr(found, name), kind):
                raise TypeError(f"{name} of the provenance is {getattr(found, name)!s:.40}")
        return found

    @classmethod
    def now(cls, hardware: str | None = None, *, since: float | None = None) -> Self:
        """The provenance of work that ends now.

        Args:
            hardware: the device in words; this machine's processor by default.
            since: `time.time()` when the work began; now by default.
        """
        end = time.time()
        began = end if since is None else since
        commit, dirty = _commit()
        started = datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds")
        return cls(hardware or processor(), _versions(), commit, dirty, started, round(end - began, 3))


def hardware(device: torch.device, processes: int = 1) -> str:
    """Describe the hardware: the name of the GPU or of the processor, and how many processes work together."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    return name if processes == 1 else f"{processes} processes, each on {name}"


@cache
def processor() -> str:
    """Name this machine's processor, with the number of cores this process may use."""
    return f"{_cores()} x {_processor_name()}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@cache
def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


@cache
def _commit() -> tuple[str | None, bool]:
    """The commit of the checkout this file belongs to, and whether it has uncommitted changes."""
    ours = _git("ls-files", "--error-unmatch", Path(__file__).name)
    head = ours and _git("rev-parse", "--short=12", "HEAD")
    dirty = bool(head and _git("status", "--porcelain", "--untracked-files=no"))
    return head or os.environ.get("BATCHENSEMBLE_COMMIT"), dirty


def _git(*arguments: str) -> str:
    try:
        here = Path(__file__).parent
        done = subprocess.run(["git", "-C", here, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
