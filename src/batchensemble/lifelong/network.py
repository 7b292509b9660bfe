"""Tasks around one network: a member and a head for each; new ones train in a twin that shares the weights."""

import copy
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble.ensemble import Ensemble, twin_of
from batchensemble.lifelong.head import TaskHead
from batchensemble.nn.layers.member import MemberModule, member_modules, own_tensors
from batchensemble.nn.routing.rows import places_of


class Tasks(nn.Module):
    """An ensemble with a member per task, and every task's head.

    Args:
        ensemble: the backbone; member i is task i.
        names: names of the tasks, in the order of the members.
        heads: their heads, in the same order.
        number: how many tasks were learned before these.
        earlier: the tasks that lateral connections look at; by default those in here.

    Attributes:
        numbers: how many tasks were learned before each, in the same order; forgotten ones count.
        learned: how many tasks were ever learned: the number of the next one.
        skill: how well the first one was learned, by `stall.skill`; `None` if that is not known.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        names: Sequence[str] = (),
        heads: Sequence[TaskHead] = (),
        number: int = 0,
        earlier: "Tasks | None" = None,
    ) -> None:
        super().__init__()
        self.ensemble = ensemble
        self.names = list(names)
        self.heads = nn.ModuleList(heads)
        self.learned = number + len(self.names)
        self.numbers = list(range(number, self.learned))
        self.skill: float | None = None
        self._earlier = (earlier,)  # in a tuple, so that it is not a submodule

    def forward(self, x: Tensor, task: int | Tensor) -> Tensor:
        """Logits `(N, classes)` of one task for all rows, or of each row's own task, given their places `(N,)`.

        Mixed rows get as many logits as the largest head among them has; classes that a row's task does not have
        are minus infinity.
        """
        features: Tensor = self.ensemble(x, member=task)
        if not isinstance(task, Tensor):
            return self._logits(task, x, features)
        places = places_of(task)
        parts = [self._logits(i, x[rows], features[rows]) for i, rows in places]
        return joined(parts)[torch.cat([rows for _, rows in places]).argsort()]

    def _logits(self, place: int, x: Tensor, features: Tensor) -> Tensor:
        head = cast(TaskHead, self.heads[place])  # not all heads: there may be a thousand
        home = self._earlier[0] or self
        others = [home.features(x, source) for source in head.sources]
        return head(features, others)  # type: ignore[no-any-return]

    @torch.no_grad()
    def features(self, x: Tensor, name: str) -> Tensor:
        """A task's own features, for others to look at."""
        features: Tensor = self.ensemble(x, member=self.names.index(name))
        return features

    @property
    def task_heads(self) -> list[TaskHead]:
        """The heads; a `ModuleList` does not know their class."""
        return cast(list[TaskHead], list(self.heads))

    @property
    def sources(self) -> set[str]:
        """Names of all tasks that lateral connections look at."""
        return {source for head in self.task_heads for source in head.sources}

    def place(self, task: str | int) -> int:
        """The place of a task, by its name; a task that is not here is refused."""
        name = str(task)
        if name not in self.names:
            raise ValueError(f"unknown task '{name}': this learner knows {', '.join(self.names) or 'none yet'}")
        return self.names.index(name)

    def places(self, task: Any, rows: int, device: torch.device) -> int | Tensor:
        """The place of one task, or the places `(N,)` of each row's own.

        Args:
            task: a name; or one per row, as a sequence or (for names that are numbers) a tensor.
            rows: how many rows there are.
            device: where the rows are.
        """
        if isinstance(task, str | int):
            return self.place(task)
        names = task.tolist() if hasattr(task, "tolist") else task  # numbers of torch and NumPy
        if not isinstance(names, Sequence):
            return self.place(names)
        if len(names) != rows or not rows:
            raise ValueError(f"expected one task, or one for each of the {rows} rows; got {len(names)}")
        return torch.tensor([self.place(name) for name in names], dtype=torch.int64, device=device)

    def extract(self, task: str | int) -> nn.Module:
        """A task as a plain network, `backbone` then `head`; one that looks at others is refused."""
        place = self.place(task)
        head = self.task_heads[place]
        if head.lateral is not None:
            raise ValueError(f"task '{task}' looks at {head.sources}: no plain network says what it says")
        layers = {"backbone": self.ensemble.extract(place), "head": copy.deepcopy(head.layers)}
        return nn.Sequential(OrderedDict(layers)).eval()

    def twin(self) -> "Tasks":
        """The same tasks, to be changed by `adopt` and `drop` while these stay as they are; what is kept is shared."""
        new = Tasks(twin_of(self.ensemble), self.names, self.task_heads)
        new.numbers, new.learned, new.skill = list(self.numbers), self.learned, self.skill
        return new

    @torch.no_grad()
    def adopt(self, others: "Tasks") -> None:
        """Take over tasks that trained elsewhere; those that are here answer as before."""
        before = len(self.names)  # without tasks, there is one member that is none yet
        self.ensemble.keep_members([*range(before), *[0] * len(others.names)])  # in new tensors, with room for theirs
        new = own_tensors(others.ensemble.net)
        for name, rows in own_tensors(self.ensemble.net).items():
            rows[before:].copy_(new[name])
        self.names += others.names
        self.numbers += others.numbers
        self.learned = max(self.learned, others.learned)
        self.heads.extend(others.heads)

    def drop(self, task: str | int) -> None:
        """Drop a task; the others answer as before. The only one, and one that another looks at, are refused."""
        place, name = self.place(task), str(task)
        if len(self.names) == 1:
            raise ValueError(f"task '{name}' is the only one: make a new learner instead of an empty one")
        for other, head in zip(self.names, self.task_heads, strict=True):
            if name in head.sources:
                raise ValueError(f"task '{other}' looks at task '{name}': forget that one first")
        self.ensemble.keep_members([i for i in range(len(self.names)) if i != place])
        del self.names[place], self.numbers[place], self.heads[place]


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Logits below each other, as wide as the widest; classes that a row's task does not have are minus infinity.

    Examples:
        >>> joined([torch.zeros(1, 3), torch.zeros(1, 2)])
        tensor([[0., 0., 0.],
                [0., 0., -inf]])
    """
    width = max(part.shape[1] for part in parts)
    return torch.cat([F.pad(part, (0, width - part.shape[1]), value=-torch.inf) for part in parts])


def twin_for_new_tasks(ensemble: Ensemble, likes: Sequence[int], fresh: torch.Generator | None = None) -> Ensemble:
    """An ensemble that shares all common weights with `ensemble`, with new members of its own.

    An optimiser with momentum moves all rows of a stacked parameter, even those without a gradient. So new tasks train
    in here, where there are no others, and cost the same however many tasks are known.

    Args:
        ensemble: left as it is; its common weights are frozen.
        likes: the members that the new ones start as.
        fresh: if given, the source of new r and s, by the initialisation of `batchensemble.convert`.
    """
    new = twin_of(ensemble)
    new.keep_members(likes)
    for _, module in member_modules(new.net):
        drawn = module.fresh(len(likes), fresh) if fresh is not None else {}
        for name, tensor in module.stacked_tensors():
            if name in drawn:
                tensor.data.copy_(drawn[name])
            if isinstance(tensor, nn.Parameter):
                tensor.requires_grad_()
    return new


def train_own_(ensemble: Ensemble) -> None:
    """Switch to training mode, except for modules with shared buffers, such as statistics that all members use."""
    ensemble.train()
    for module in ensemble.modules():
        if not isinstance(module, MemberModule) and any(True for _ in module.buffers(recurse=False)):
            module.training = False  # this one alone: eval() would reach the layers inside
