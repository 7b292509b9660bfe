"""What the files of a learner hold: what all tasks share, and what is a task's own."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from batchensemble import files
from batchensemble.ensemble import Ensemble
from batchensemble.lifelong.head import HeadRule, TaskHead
from batchensemble.lifelong.identity import digest
from batchensemble.lifelong.names import check_new, checked_name
from batchensemble.lifelong.network import Tasks, twin_for_new_tasks
from batchensemble.nn.member import own_tensors
from batchensemble.seeds import seeded


def save_task(tasks: Tasks, place: int, path: Path, shared: Mapping[str, str] | None = None) -> None:
    """Write a task's own tensors, and fingerprints of everything else that its answers depend on.

    Args:
        tasks: the tasks that it belongs to.
        place: its place among them.
        path: the file; replaced in one move.
        shared: fingerprints of what all tasks share, for callers that save several.
    """
    head: TaskHead = tasks.heads[place]  # type: ignore[assignment]
    header = {
        "name": tasks.names[place],
        "classes": head.classes,
        "number": tasks.numbers[place],
        "learned": tasks.learned,
        "sources": {source: digest(_rows(tasks, tasks.names.index(source))) for source in head.sources},
        "fingerprints": dict(files.fingerprints(tasks.ensemble.net) if shared is None else shared),
    }
    files.write(path, "task", _own(tasks, place), header)


def load_task_(
    tasks: Tasks,
    path: Path,
    rule: HeadRule,
    shared: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    number: int | None = None,
) -> str:
    """Add the task in a file to those that are known.

    Args:
        tasks: the tasks that are known.
        path: the file.
        rule: how heads are made.
        shared: fingerprints of what all tasks share here, for callers that load several.
        name: a name instead of the one in the file.
        number: a number instead of the one in the file, which comes from elsewhere then: how many tasks were learned
            there does not count here.

    Returns:
        Its name.

    Raises:
        ValueError: the file was saved with other shared weights, does not fit this network, or its name is taken.
    """
    own = files.fingerprints(tasks.ensemble.net) if shared is None else shared
    found = _read_task(tasks, path, rule, own, name, number)
    check_new(found.names[0], tasks.names, "load it under another name")
    tasks.adopt(found.eval())
    return found.names[0]


@torch.no_grad()
def _read_task(
    tasks: Tasks, path: Path, rule: HeadRule, shared: Mapping[str, str], name: str | None, number: int | None
) -> Tasks:
    """The task in a file, in a twin."""
    tensors, header = files.read(path, "task")
    files.check_shared(path, header["fingerprints"], shared)
    for source, expected in header["sources"].items():
        if source not in tasks.names or digest(_rows(tasks, tasks.names.index(source))) != expected:
            raise ValueError(f"{path} looks at task '{source}', which is not known here or is another one")
    with seeded(0), torch.device("cpu"):  # what it draws is replaced below; the user's random numbers stay as they are
        head = TaskHead(rule, header["classes"], tuple(header["sources"]))
    head.to(tasks.ensemble.device, tasks.ensemble.dtype)
    names, place = [checked_name(name or header["name"])], header["number"] if number is None else number
    found = Tasks(twin_for_new_tasks(tasks.ensemble, [0]), names, [head], place)
    if number is None:
        found.learned = header["learned"]
    _fill_(_own(found, 0), path, tensors)
    return found


def save_shared(tasks: Tasks, path: Path) -> None:
    """Write what all tasks have in common, and how well the first one was learned."""
    files.write(path, "shared", _common(tasks.ensemble), {"skill": tasks.skill})


@torch.no_grad()
def load_shared_(tasks: Tasks, path: Path) -> None:
    """Read what `save_shared` wrote."""
    tensors, header = files.read(path, "shared")
    _fill_(_common(tasks.ensemble), path, tensors)
    tasks.skill = header["skill"]


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
    own = {id(tensor) for tensor in own_tensors(ensemble.net).values()}
    names = {name for name, tensor in ensemble.net.state_dict(keep_vars=True).items() if id(tensor) in own}
    return {name: tensor for name, tensor in files.distinct_state(ensemble.net).items() if name not in names}
