"""Bayesian linear regression on the features that a network learns."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from batchensemble.lab.methods.bandits.agent import NetworkAgent
from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.linear import Posterior, Prior
from batchensemble.lab.methods.bandits.network import NetworkTraining, forward


@dataclass(frozen=True)
class NeuralLinear:
    """Thompson sampling with an exact linear posterior on the last hidden layer, without intercept.

    Args:
        prior: prior of noise and coefficients.
        training: how the network is trained.
    """

    prior: Prior = field(default_factory=Prior)
    training: NetworkTraining = field(default_factory=NetworkTraining)

    def start(self, setting: Setting) -> "NeuralLinearAgent":
        """Start the algorithm at the beginning of its games."""
        return NeuralLinearAgent(setting, self)


class NeuralLinearAgent(NetworkAgent):
    """`NeuralLinear` while it plays."""

    def __init__(self, setting: Setting, method: NeuralLinear) -> None:
        super().__init__(setting, method.training)
        width, device = method.training.hidden[-1], self.streams.device
        self.posterior = Posterior(setting.trials, setting.arms, width, method.prior, device)

    def values(self, contexts: Tensor) -> Tensor:
        """Sample every arm's value."""
        return self.posterior.sample(self._features(contexts[..., None])[..., 0], self.streams)

    def update(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """Update the regression at once, and the network every so often, which changes all features."""
        self.posterior.observe(self._features(contexts[..., None])[..., 0], arms, rewards)
        super().update(contexts, arms, rewards)

    def learn(self) -> None:
        """Train the network, and refit the regression to its new features."""
        super().learn()
        seen = self.history.all()
        self.posterior.refit(self._features(seen.contexts).mT, seen.arms[:, 0], seen.rewards[:, 0])

    @torch.no_grad()
    def _features(self, columns: Tensor) -> Tensor:
        return forward(self.layers(), columns)[0]
