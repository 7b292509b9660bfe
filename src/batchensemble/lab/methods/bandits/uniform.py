"""Random arms, whatever happened: the reference for every regret."""

from dataclasses import dataclass

from torch import Tensor

from batchensemble.lab.methods.bandits.algorithm import Setting


@dataclass(frozen=True)
class Uniform:
    """Pulls an arm at random."""

    def start(self, setting: Setting) -> "UniformAgent":
        """Start the algorithm at the beginning of its games."""
        return UniformAgent(setting)


class UniformAgent:
    """`Uniform` while it plays."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def act(self, contexts: Tensor) -> Tensor:
        """A random arm for every trial."""
        return self._setting.streams.integers(self._setting.arms)

    def update(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """Do nothing."""
