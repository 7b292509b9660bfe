"""The interface of every bandit algorithm: which arm to pull, and what to learn from the reward."""

from typing import NamedTuple, Protocol

from torch import Tensor

from batchensemble.lab.methods.bandits.streams import Streams


class Setting(NamedTuple):
    """The game: its sizes, its length and the trials' random numbers.

    Attributes:
        context_dim: width of a context.
        arms: number of arms to choose from.
        steps: number of pulls.
        streams: random numbers, with a generator for every trial.
    """

    context_dim: int
    arms: int
    steps: int
    streams: Streams

    @property
    def trials(self) -> int:
        """The number of games that are played in parallel, in one computation."""
        return len(self.streams)


class Algorithm(Protocol):
    """An algorithm that plays all trials at once. No trial learns from another."""

    def act(self, contexts: Tensor) -> Tensor:
        """The arm to pull in every trial: `(trials, context_dim) -> (trials,)`."""
        ...

    def update(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """Receive the rewards of the pulled arms: `(trials, context_dim)`, `(trials,)`, `(trials,)`."""
        ...


class Method(Protocol):
    """An algorithm before the game. Implementations are frozen dataclasses whose fields are settings."""

    def start(self, setting: Setting) -> Algorithm:
        """Start the algorithm at the beginning of its games."""
        ...
