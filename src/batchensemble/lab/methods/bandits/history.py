"""The replay buffer: everything each trial has seen so far."""

from typing import NamedTuple

import torch
from torch import Tensor


class Seen(NamedTuple):
    """Observations in the layout for training: rows are the last axis (see `network`).

    Attributes:
        contexts: `(nets, context_dim, rows)`.
        arms: the arm that was pulled, `(nets, 1, rows)`.
        rewards: its reward, `(nets, 1, rows)`.
    """

    contexts: Tensor
    arms: Tensor
    rewards: Tensor


class History:
    """All observations of all trials, in order; every trial has the same number.

    Args:
        trials: number of games played in parallel.
        context_dim: width of a context.
        capacity: most observations per trial.
        device: where they are kept.

    Examples:
        >>> history = History(trials=2, context_dim=3, capacity=10)
        >>> history.add(torch.ones(2, 3), torch.tensor([0, 1]), torch.tensor([0.5, 2.0]))
        >>> len(history), history.rows(torch.zeros(2, 4, dtype=torch.int64)).contexts.shape
        (1, torch.Size([2, 3, 4]))
    """

    def __init__(self, trials: int, context_dim: int, capacity: int, device: torch.device | str = "cpu") -> None:
        self.contexts = torch.zeros(trials, capacity, context_dim, device=device)
        self.arms = torch.zeros(trials, capacity, dtype=torch.int64, device=device)
        self.rewards = torch.zeros(trials, capacity, device=device)
        self._first = torch.arange(trials, device=device)[:, None] * capacity  # each trial's offset, flattened
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """Add one observation of every trial: `(trials, context_dim)`, `(trials,)`, `(trials,)`."""
        place, self._count = self._count, self._count + 1
        self.contexts[:, place], self.arms[:, place], self.rewards[:, place] = contexts, arms, rewards

    def rows(self, numbers: Tensor, nets: int = 1) -> Seen:
        """The observations numbered `(trials, nets * rows)`, divided among the networks of each trial."""
        place = (numbers + self._first).flatten()
        trials, rows = len(numbers), numbers.shape[1] // nets
        contexts = self.contexts.flatten(0, 1).index_select(0, place)
        arms, rewards = self.arms.flatten()[place], self.rewards.flatten()[place]
        return Seen(
            contexts.view(trials * nets, rows, -1).mT,
            arms.view(trials * nets, 1, rows),
            rewards.view(trials * nets, 1, rows),
        )

    def all(self) -> Seen:
        """All observations so far, for one network per trial."""
        here = slice(0, self._count)
        return Seen(self.contexts[:, here].mT, self.arms[:, None, here], self.rewards[:, None, here])
