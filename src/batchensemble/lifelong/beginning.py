"""How new tasks start: as which member, with which head, and looking at which earlier tasks."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from batchensemble.ensemble import Ensemble
from batchensemble.lifelong.data import Part
from batchensemble.lifelong.head import HeadRule, TaskHead
from batchensemble.lifelong.network import Tasks, train_own_, twin_for_new_tasks
from batchensemble.lifelong.similarity import similarities
from batchensemble.seeds import seed_of, seeded

Start = Literal["first", "similar", "init"]


@dataclass(frozen=True)
class Beginning:
    """What every new task of a learner starts with.

    Args:
        head: how heads are made.
        start: later tasks start as the first task, as the most similar one, or as the initialisation says.
        laterals: how many earlier tasks a new one looks at.
        seed: seed for everything that is drawn.
    """

    head: HeadRule
    start: Start = "first"
    laterals: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.start not in ("first", "similar", "init"):
            raise ValueError(f"start must be 'first', 'similar' or 'init', got {self.start!r}")
        if self.laterals < 0:
            raise ValueError(f"laterals must be at least 0, got {self.laterals}")

    def first(self, known: Tasks, parts: Sequence[Part]) -> Tasks:
        """Tasks that train the shared weights, in a copy of the network."""
        body = copy.deepcopy(known.ensemble).train()
        if len(parts) > 1:
            body.add_members(len(parts) - 1, generator=_generator(self.seed))
        return self._tasks(body, known, parts, [[]] * len(parts), self.seed)

    def later(self, known: Tasks, parts: Sequence[Part], augment: Callable[[Tensor], Tensor] | None) -> Tasks:
        """Tasks that train only what is their own, in a twin of the network.

        Args:
            known: the tasks so far; one member without a task if there are none.
            parts: the data of the new ones.
            augment: what training does to inputs.
        """
        orders = [self._ranked(known, part, augment) for part in parts]
        seed = seed_of(self.seed, known.learned, 1)
        fresh = _generator(seed) if self.start == "init" or not known.names else None
        body = twin_for_new_tasks(known.ensemble, [order[0] for order in orders], fresh)
        train_own_(body)
        looked_at = orders if known.names else [[]] * len(parts)
        return self._tasks(body, known, parts, looked_at, seed)

    def _tasks(
        self, body: Ensemble, known: Tasks, parts: Sequence[Part], orders: Sequence[Sequence[int]], seed: int
    ) -> Tasks:
        sources = [tuple(known.names[place] for place in order[: self.laterals]) for order in orders]
        with seeded(seed, known.ensemble.device), torch.device("cpu"):  # wherever torch puts tensors by default
            heads = [TaskHead(self.head, part.classes, looks) for part, looks in zip(parts, sources, strict=True)]
        tasks = Tasks(body, [part.name for part in parts], heads, known.learned, earlier=known)
        tasks.heads.to(known.ensemble.device, known.ensemble.dtype)
        return tasks

    def _ranked(self, known: Tasks, part: Part, augment: Callable[[Tensor], Tensor] | None) -> list[int]:
        """Places of the known tasks, beginning with the one to start as; by similarity where that matters."""
        if not known.names or (self.start != "similar" and not self.laterals):
            return [0]
        scores = similarities(known, part, self.seed, augment)
        order = sorted(range(len(scores)), key=lambda place: -scores[known.names[place]])
        return order if self.start == "similar" else [0, *(place for place in order if place)]


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
