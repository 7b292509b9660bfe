"""A learner on disk: one file for what tasks share, a small one for every task."""

import hashlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from batchensemble import files
from batchensemble.disk import held
from batchensemble.ensemble import Ensemble
from batchensemble.lifelong.checkpoint import read_checkpoint
from batchensemble.lifelong.head import HeadRule, TaskHead
from batchensemble.lifelong.names import checked_name
from batchensemble.lifelong.network import Tasks, members_of, twin
from batchensemble.nn.changed import member_modules


def save_task(tasks: Tasks, place: int, path: Path, shared: Mapping[str, str]) -> None:
    """Write a task's own tensors, and fingerprints of everything else that its answers depend on.

    Args:
        tasks: the tasks that it belongs to.
        place: its place among them.
        path: the file; replaced in one move.
        shared: fingerprints of what all tasks share.
    """
    head: TaskHead = tasks.heads[place]  # type: ignore[assignment]
    tensors = {f"member.{key}": value for key, value in _rows(tasks, place).items()}
    tensors |= {f"head.{key}": value for key, value in head.state_dict().items()}
    sources = head.lateral.sources if head.lateral else ()
    header = {
        "name": tasks.names[place],
        "classes": head.classes,
        "number": tasks.numbers[place],
        "sources": {source: digest(_rows(tasks, tasks.names.index(source))) for source in sources},
        "fingerprints": dict(shared),
    }
    files.write(path, "task", tensors, header)


@torch.no_grad()
def load_task(
    tasks: Tasks, path: Path, rule: HeadRule, name: str | None, number: int | None, shared: Mapping[str, str]
) -> Tasks:
    """Read the task in a file, as a twin to adopt.

    Args:
        tasks: the tasks that are known.
        path: the file.
        rule: how heads are made.
        name: a name instead of the one in the file.
        number: a number instead of the one in the file.
        shared: fingerprints of what all tasks share here.

    Raises:
        ValueError: the file was saved with other shared weights, or does not fit this network.
    """
    tensors, header = files.read(path, "task")
    _check_shared(path, shared, header["fingerprints"])
    for source, expected in header["sources"].items():
        if source not in tasks.names or digest(_rows(tasks, tasks.names.index(source))) != expected:
            raise ValueError(f"{path} looks at task '{source}', which is not known here or is another one")
    head = TaskHead(rule, header["classes"], tuple(header["sources"])).to(tasks.ensemble.device, tasks.ensemble.dtype)
    number = int(header["number"]) if number is None else number
    found = Tasks(twin(tasks.ensemble, [0]), [checked_name(name or header["name"])], [head], number)
    targets = {f"member.{key}": value for key, value in _rows(found, 0).items()}
    targets |= {f"head.{key}": value for key, value in head.state_dict().items()}
    files.check_fit(path, tensors, {key: target.shape for key, target in targets.items()})
    for key, target in targets.items():
        target.copy_(tensors[key])
    return found


def save_shared(ensemble: Ensemble, path: Path, skill: float) -> None:
    """Write what all tasks have in common, and how well the first one was learned."""
    files.write(path, "shared", _common(ensemble), {"skill": skill})


@torch.no_grad()
def load_shared_(ensemble: Ensemble, path: Path) -> float:
    """Read the common weights into an ensemble; return how well the first task was learned."""
    tensors, header = files.read(path, "shared")
    targets = _common(ensemble)
    files.check_fit(path, tensors, {name: target.shape for name, target in targets.items()})
    for name, target in targets.items():
        target.copy_(tensors[name])
    return float(header["skill"])


@dataclass(frozen=True)
class Folder:
    """A learner's folder: `shared.safetensors`, a file per task, and the checkpoint of what is being learned."""

    path: Path

    def task(self, name: str) -> Path:
        """Where a task is kept."""
        return self.path / f"task-{name}.safetensors"

    @property
    def shared(self) -> Path:
        """Where the common weights are kept."""
        return self.path / "shared.safetensors"

    @property
    def unfinished(self) -> Path:
        """Where a training is kept while it lasts."""
        return self.path / "learning.pt"

    def found(self) -> list[Path]:
        """The tasks' files, in the order in which the tasks were learned.

        Without shared weights, none counts; shared weights without any task are those of a first one cut short.
        """
        return sorted(self.whole(), key=lambda path: (int(files.read(path, "task")[1]["number"]), path.name))

    def whole(self) -> set[Path]:
        """The same files, in no order and unread."""
        return self.files() - self._torn() if self.shared.exists() else set()

    def held(self) -> AbstractContextManager[None]:
        """Reserve the folder for this process alone, until it is released or the process ends.

        The lock is inside the folder, since the one around it may belong to somebody else.
        """
        advice = "wait for it, or give this learner a folder of its own"
        return held(self.path / ".lock", f"another process is learning in {self.path}: {advice}")

    def files(self) -> set[Path]:
        """The files of all tasks."""
        return set(self.path.glob("task-*.safetensors"))

    def _torn(self) -> set[Path]:
        """Files of tasks that were learned together, if a kill came before the last of them was written."""
        state = {}
        if self.unfinished.exists():
            with suppress(ValueError):  # a damaged one is reported when the next task is learned
                state = read_checkpoint(self.unfinished)
        if not state or "optimizer" in state:  # the training was not done
            return set()
        together = {self.task(name) for name, *_ in state["identity"]["tasks"]}
        return set() if together <= self.files() else together


def digest(tensors: Mapping[str, Tensor] | Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that identify tensors or plain values."""
    found = hashlib.sha256()
    for name, value in tensors.items():
        found.update(name.encode())
        found.update(files.raw_bytes(value) if isinstance(value, Tensor) else str(value).encode())
    return found.hexdigest()[:16]


def _check_shared(path: Path, own: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    for layer in [*own, *theirs]:
        if own.get(layer) != theirs.get(layer):
            raise ValueError(
                f"{path} was saved with other shared weights: they differ first in layer '{layer}'. "
                "A task's file only fits the learner that it was learned in."
            )


def _rows(tasks: Tasks, place: int) -> dict[str, Tensor]:
    """Views of a task's rows."""
    return {
        f"{layer}.{name}".removeprefix("."): tensor.detach()[place]
        for layer, module in members_of(tasks)
        for name, tensor in module.stacked_tensors()
    }


def _common(ensemble: Ensemble) -> dict[str, Tensor]:
    """The network's tensors that no member has to itself."""
    own = {id(tensor) for _, module in member_modules(ensemble.net) for _, tensor in module.stacked_tensors()}
    names = {name for name, tensor in ensemble.net.state_dict(keep_vars=True).items() if id(tensor) in own}
    return {name: tensor for name, tensor in files.distinct_state(ensemble.net).items() if name not in names}
