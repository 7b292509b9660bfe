"""Independent networks, one of which decides."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from batchensemble.lab.methods.bandits.agent import NetworkAgent
from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.history import Seen
from batchensemble.lab.methods.bandits.network import Layer, NetworkTraining, answer


@dataclass(frozen=True)
class Naive:
    """Networks that differ in initialisation and minibatches; a randomly drawn one makes each decision.

    Args:
        members: number of networks.
        keep: probability that a network sees an observation: 1 is all data for all, 0.95 the benchmark's bootstrap.
        training: how each is trained.
    """

    members: int = 4
    keep: float = 1.0
    training: NetworkTraining = field(default_factory=NetworkTraining)

    def start(self, setting: Setting) -> "NaiveAgent":
        """Start the algorithm at the beginning of its games."""
        return NaiveAgent(setting, self)


class NaiveAgent(NetworkAgent):
    """`Naive` while it plays."""

    def __init__(self, setting: Setting, method: Naive) -> None:
        super().__init__(setting, method.training, method.members)
        self._first = torch.arange(setting.trials, device=self.streams.device) * method.members
        self._shown = Shown(setting, method) if method.keep < 1 else None

    def values(self, contexts: Tensor) -> Tensor:
        """The outputs of one network per trial."""
        chosen = self._first + self.streams.integers(self.nets)
        return answer([Layer(*(part[chosen] for part in layer)) for layer in self.layers()], contexts)

    def update(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """Remember the observation, for every network or for some of them."""
        if self._shown is not None:
            self._shown.add(len(self.history))
        super().update(contexts, arms, rewards)

    def minibatch(self) -> Seen:
        """Draw from the rows that each network was shown."""
        if self._shown is None:
            return super().minibatch()
        return self.history.rows(self._shown.draw(self.training.batch), self.nets)


class Shown:
    """Which observations each network was shown; the first goes to all."""

    def __init__(self, setting: Setting, method: Naive) -> None:
        self._streams, self._keep, self._members = setting.streams, method.keep, method.members
        shape = (setting.trials, method.members)
        self._rows = torch.zeros(*shape, setting.steps, dtype=torch.int64, device=setting.streams.device)
        self._counts = torch.zeros(*shape, dtype=torch.int64, device=setting.streams.device)

    def add(self, row: int) -> None:
        """Add observation `row` for the networks whose coin says so."""
        coins = self._streams.coins(self._keep if row else 1.0, self._members).long()
        self._rows.scatter_(2, self._counts[..., None], row)  # if not counted, the next one overwrites it
        self._counts += coins

    def draw(self, count: int) -> Tensor:
        """Draw `count` random rows for every network, `(trials, members * count)`."""
        numbers = (self._streams.uniform(self._members, count) * self._counts[..., None]).long()
        return self._rows.gather(2, numbers.clamp_(max=len(self._rows[0, 0]) - 1)).flatten(1)
