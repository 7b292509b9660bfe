"""One bandit game: what is shown, what every arm would give, and what the best choice is worth."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Game:
    """The data of one trial.

    Attributes:
        contexts: what is shown at every step, `(steps, context_dim)`.
        rewards: what each arm would give, `(steps, arms)`; an algorithm sees that of the arm it pulls.
        optimal: what the best choice gives, `(steps,)`: its expected reward, where chance decides after the choice.
    """

    contexts: Array
    rewards: Array
    optimal: Array

    def __post_init__(self) -> None:  # float32, as the networks want it
        for name in ("contexts", "rewards", "optimal"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float32))

    def __len__(self) -> int:
        return len(self.contexts)


class Problem(Protocol):
    """Where games come from."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def play(self, steps: int, chance: np.random.Generator) -> Game:
        """A game of this many steps, or of as many as there are data."""
        ...


def one_hot(columns: NDArray[np.str_]) -> Array:
    """Every column of categories as indicator columns, categories in alphabetical order.

    Examples:
        >>> one_hot(np.array([["a", "x"], ["b", "x"]])).tolist()
        [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    parts = []
    for column in columns.T:
        names, places = np.unique(column, return_inverse=True)
        parts.append(np.eye(len(names), dtype=np.float32)[places])
    return np.concatenate(parts, 1)
