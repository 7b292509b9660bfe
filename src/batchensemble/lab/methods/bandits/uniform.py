"""Any arm, whatever happened: what every regret is compared with."""

from dataclasses import dataclass

from torch import Tensor

from .algorithm import Setting


@dataclass(frozen=True)
class Uniform:
    """Pulls an arm at random."""

    def start(self, setting: Setting) -> "UniformAgent":
        """The algorithm at the start of its games."""
        return UniformAgent(setting)


class UniformAgent:
    """`Uniform` under way."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def act(self, contexts: Tensor) -> Tensor:
        """A random arm in every trial."""
        return self._setting.streams.integers(self._setting.arms)

    def update(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """Nothing."""
