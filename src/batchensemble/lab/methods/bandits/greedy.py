"""One network, followed greedily: exploration comes from what it has not learned yet."""

from dataclasses import dataclass, field

from batchensemble.lab.methods.bandits.agent import NetworkAgent
from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.network import NetworkTraining


@dataclass(frozen=True)
class Greedy:
    """The benchmark's `RMS`.

    Args:
        training: how the network is trained.
    """

    training: NetworkTraining = field(default_factory=NetworkTraining)

    def start(self, setting: Setting) -> NetworkAgent:
        """Start the algorithm at the beginning of its games."""
        return NetworkAgent(setting, self.training)
