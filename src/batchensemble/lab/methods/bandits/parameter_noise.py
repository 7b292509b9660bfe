"""A network whose parameters are perturbed for every decision."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from batchensemble.lab.methods.bandits.agent import NetworkAgent
from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.network import Layer, NetworkTraining, answer, forward


@dataclass(frozen=True)
class ParameterNoise:
    """Gaussian noise on all parameters, just strong enough to change the policy a little.

    After every training, the noise grows by 1 % if the KL divergence between the softmax of the network's outputs and
    that of the perturbed network's is below `-log(1 - eps + eps / arms)`, and shrinks by 1 % otherwise; eps shrinks
    by 1 %.

    Args:
        noise: initial standard deviation.
        eps: how often, roughly, the noise may change a decision.
        rows: rows of the history on which the divergence is measured.
        training: how the network is trained. Its learning rate is never reset, whatever `reset_lr` says.
    """

    noise: float = 0.05
    eps: float = 0.1
    rows: int = 300
    training: NetworkTraining = field(default_factory=NetworkTraining)

    def start(self, setting: Setting) -> "ParameterNoiseAgent":
        """Start the algorithm at the beginning of its games."""
        return ParameterNoiseAgent(setting, self)


class ParameterNoiseAgent(NetworkAgent):
    """`ParameterNoise` while it plays."""

    def __init__(self, setting: Setting, method: ParameterNoise) -> None:
        super().__init__(setting, method.training)
        self._rows, self._eps = method.rows, method.eps
        self.noise = torch.full((setting.trials, 1, 1), method.noise, device=self.streams.device)

    def values(self, contexts: Tensor) -> Tensor:
        """The perturbed network's outputs."""
        return answer(self._shaken(), contexts)

    def learn(self) -> None:
        """Train the network, then adapt the noise."""
        for _ in range(self.training.steps):
            self.optimizer.step(self.loss(self.minibatch()))
        self._adapt()

    @torch.no_grad()
    def _adapt(self) -> None:
        columns = self.history.rows(self.streams.integers(len(self.history), self._rows)).contexts
        logits, shaken = (forward(layers, columns)[1].log_softmax(1) for layers in (self.layers(), self._shaken()))
        divergence = (logits.exp() * (logits - shaken)).sum(1).mean(1)  # (trials,)
        limit = -math.log1p(-self._eps + self._eps / self.setting.arms)
        self.noise *= torch.where(divergence < limit, 1.01, 1 / 1.01)[:, None, None]
        self._eps *= 0.99

    def _shaken(self) -> list[Layer]:
        def shake(part: Tensor) -> Tensor:
            return part + self.noise * self.streams.normal(*part.shape[1:])

        return [Layer(shake(layer.weight), shake(layer.bias)) for layer in self.layers()]
