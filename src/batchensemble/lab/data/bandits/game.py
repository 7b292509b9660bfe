"""One bandit game: the contexts, every arm's reward, and the value of the best choice."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from batchensemble.lab.data.rows import Array


@dataclass(frozen=True, eq=False)
class Game:
    """The data of one trial.

    Attributes:
        contexts: the context shown at every step, `(steps, context_dim)`.
        rewards: the reward each arm would give, `(steps, arms)`; an algorithm sees only that of the arm it pulls.
        optimal: the value of the best choice, `(steps,)`: its expected reward, if chance decides after the choice.
    """

    contexts: Array
    rewards: Array
    optimal: Array

    def __post_init__(self) -> None:  # float32, as the networks expect
        for name in ("contexts", "rewards", "optimal"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float32))

    def __len__(self) -> int:
        return len(self.contexts)


class Problem(Protocol):
    """A source of games."""

    def play(self, steps: int, chance: np.random.Generator) -> Game:
        """Draw a game of this many steps, or as many as the data has."""
        ...
