"""What the files of a learner hold: what all tasks share, and what is a task's own."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from batchensemble import files
from batchensemble.ensemble import Ensemble
from batchensemble.lifelong.head import HeadRule, TaskHead
from batchensemble.lifelong.identity import digest
from batchensemble.lifelong.names import check_new, checked_name
from batchensemble.lifelong.network import Tasks, twin_for_new_tasks
from batchensemble.nn.layers.member import own_tensors
from batchensemble.seeds import seeded


def save_task(tasks: Tasks, place: int, path: Path, shared: Mapping[str, str] | None = None) -> None:
    """Write a task's own tensors, and fingerprints of everything else that its answers depend on.

    Args:
        tasks: the tasks that it belongs to.
        place: its place among them.
        path: the file; replaced in one move.
        shared: fingerprints of what all tasks share, for callers that save several.
    """
    head = tasks.task_heads[place]
    header = {
        "name": tasks.names[place],
        "classes": head.classes,
        "number": tasks.numbers[place],
        "learned": tasks.learned,
        "sources": {source: _digest(tasks, source) for source in head.sources},
        "fingerprints": dict(files.fingerprints(tasks.ensemble.net) if shared is None else shared),
    }
    files.write(path, "task", _own(tasks, place), header)


class Stored(NamedTuple):
    """A file that was read: a task's, or that of what all share."""

    path: Path
    tensors: dict[str, Tensor]
    header: dict[str, Any]


def read(path: Path, kind: str) -> Stored:
    """Read a file of one `task`, or of what is `shared`."""
    return Stored(path, *files.read(path, kind))


def load_task_(tasks: Tasks, path: Path, rule: HeadRule, name: str | None) -> str:
    """Add the task in a file from elsewhere, as the newest one, and return its name.

    Args:
        tasks: the tasks that are known.
        path: the file.
        rule: how heads are made.
        name: a name instead of the one in the file.

    Raises:
        ValueError: see `load_tasks_`.
    """
    stored = read(path, "task")
    name, number = name or stored.header["name"], tasks.learned  # whatever it was elsewhere
    header = {**stored.header, "name": name, "number": number, "learned": number + 1}
    load_tasks_(tasks, [stored._replace(header=header)], rule)
    return name


@torch.no_grad()
def load_tasks_(tasks: Tasks, stored: Sequence[Stored], rule: HeadRule) -> None:
    """Add the tasks in files to those that are known.

    Args:
        tasks: the tasks that are known.
        stored: the files.
        rule: how heads are made.

    Raises:
        ValueError: a file was saved with other shared weights, does not fit this network, or its name is taken; or it
            looks at a task that is neither known nor in another file.
    """
    shared = files.fingerprints(tasks.ensemble.net)
    for path, _, header in stored:
        files.check_shared(path, header["fingerprints"], shared)
    headers = [header for _, _, header in stored]
    names = [checked_name(header["name"]) for header in headers]
    check_new(names, tasks.names, "load it under another name")
    with seeded(0), torch.device("cpu"):  # what it draws is replaced below; the user's random numbers stay as they are
        heads = [TaskHead(rule, header["classes"], tuple(header["sources"])) for header in headers]
    new = Tasks(twin_for_new_tasks(tasks.ensemble, [0] * len(stored)), names, heads)
    new.heads.to(tasks.ensemble.device, tasks.ensemble.dtype)
    new.numbers = [header["number"] for header in headers]
    new.learned = max(header["learned"] for header in headers)
    for place, (path, tensors, _) in enumerate(stored):
        _fill_(_own(new, place), path, tensors)
    for path, _, header in stored:
        _check_sources(path, header["sources"], (tasks, new))
    tasks.adopt(new.eval())


def _check_sources(path: Path, sources: Mapping[str, str], known: Iterable[Tasks]) -> None:
    """Refuse the file of a task that looks at others, unless they are known and the same that it looked at."""
    for source, expected in sources.items():
        if not any(source in tasks.names and _digest(tasks, source) == expected for tasks in known):
            raise ValueError(f"{path} looks at task '{source}', which is not known here or is another one")


def _digest(tasks: Tasks, name: str) -> str:
    """Identify a task by what others see of it."""
    return digest(_rows(tasks, tasks.names.index(name)))


def save_shared(tasks: Tasks, path: Path) -> None:
    """Write what all tasks have in common, and how well the first one was learned."""
    files.write(path, "shared", _common(tasks.ensemble), {"skill": tasks.skill})


@torch.no_grad()
def load_shared_(tasks: Tasks, stored: Stored) -> None:
    """Take over what `save_shared` wrote."""
    _fill_(_common(tasks.ensemble), stored.path, stored.tensors)
    tasks.skill = stored.header["skill"]


def _fill_(targets: Mapping[str, Tensor], path: Path, tensors: dict[str, Tensor]) -> None:
    """Copy a file's tensors to where they belong; a file with others is refused."""
    files.check_fit(path, tensors, targets)
    for name, target in targets.items():
        target.copy_(tensors[name])


def _own(tasks: Tasks, place: int) -> dict[str, Tensor]:
    """All tensors that a task has to itself."""
    own = {f"member.{key}": value for key, value in _rows(tasks, place).items()}
    return own | {f"head.{key}": value for key, value in tasks.heads[place].state_dict().items()}


def _rows(tasks: Tasks, place: int) -> dict[str, Tensor]:
    """Views of a task's rows in the layers that have one for every task."""
    return {name: tensor.detach()[place] for name, tensor in own_tensors(tasks.ensemble.net).items()}


def _common(ensemble: Ensemble) -> dict[str, Tensor]:
    """The network's tensors that no member has to itself."""
    own = own_tensors(ensemble.net)
    return {name: tensor for name, tensor in files.distinct_state(ensemble.net).items() if name not in own}
