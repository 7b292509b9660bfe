"""What every bandit algorithm answers: which arm to pull, and what to make of the reward."""

from typing import NamedTuple, Protocol

from torch import Tensor

from .streams import Streams


class Setting(NamedTuple):
    """The game: how wide contexts are, how many arms there are, how long it lasts, and the trials' chance.

    Attributes:
        context_dim: width of a context.
        arms: how many there are to choose from.
        steps: how often one is pulled.
        streams: random numbers, a source for every trial.
    """

    context_dim: int
    arms: int
    steps: int
    streams: Streams

    @property
    def trials(self) -> int:
        """Games that are played side by side, in one computation."""
        return len(self.streams)


class Algorithm(Protocol):
    """An algorithm under way, in all trials at once. No trial learns from another."""

    def act(self, contexts: Tensor) -> Tensor:
        """The arm to pull in every trial: `(trials, context_dim) -> (trials,)`."""
        ...

    def update(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """What the arms gave: `(trials, context_dim)`, `(trials,)`, `(trials,)`."""
        ...


class Method(Protocol):
    """An algorithm before the game. Implementations are frozen dataclasses, and their fields are settings."""

    def start(self, setting: Setting) -> Algorithm:
        """The algorithm at the start of its games."""
        ...
