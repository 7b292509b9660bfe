"""Monte Carlo dropout: every decision is made with a random mask on the network."""

from dataclasses import dataclass, field

from torch import Tensor

from batchensemble.lab.methods.bandits.agent import NetworkAgent
from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.network import NetworkTraining


@dataclass(frozen=True)
class Dropout:
    """Dropout after the hidden layers, in training and in acting.

    Args:
        keep: share of hidden units that a mask keeps.
        training: how the network is trained.
    """

    keep: float = 0.8
    training: NetworkTraining = field(default_factory=NetworkTraining)

    def start(self, setting: Setting) -> "DropoutAgent":
        """Start the algorithm at the beginning of its games."""
        return DropoutAgent(setting, self)


class DropoutAgent(NetworkAgent):
    """`Dropout` while it plays."""

    def __init__(self, setting: Setting, method: Dropout) -> None:
        super().__init__(setting, method.training)
        self._keep = method.keep

    def drop(self, columns: Tensor) -> Tensor:
        """Apply a separate mask to every row."""
        return columns * (self.streams.coins(self._keep, *columns.shape[1:]) / self._keep)
