"""Bayes by backprop: a Gaussian for every weight, trained by variational inference."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from batchensemble.lab.methods.bandits.agent import Agent
from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.gaussian import draw_mean, draw_rho
from batchensemble.lab.methods.bandits.history import Seen
from batchensemble.lab.methods.bandits.network import Layer, NetworkTraining, answer, sizes


@dataclass(frozen=True)
class BayesByBackprop:
    """The benchmark's `BBB`: weights `N(mu, exp(rho)^2)`, point estimates of biases, prior `N(0, 2 / fan in)`.

    Minimises `-mean log N(y; f(x), noise^2) + KL(q || prior) / n`. Training samples activations instead of weights
    (local reparameterisation); acting samples weights.

    Args:
        noise: standard deviation of a reward, fixed.
        training: how it is trained, except that Adam is used with a constant `lr` and without clipping.
    """

    noise: float = 0.1
    training: NetworkTraining = field(default_factory=NetworkTraining)

    def start(self, setting: Setting) -> "BayesByBackpropAgent":
        """Start the algorithm at the beginning of its games."""
        return BayesByBackpropAgent(setting, self)


class BayesByBackpropAgent(Agent):
    """`BayesByBackprop` while it plays."""

    def __init__(self, setting: Setting, method: BayesByBackprop) -> None:
        training = method.training
        super().__init__(setting, training.every, training.first_pulls)
        self.training, self._noise = training, method.noise
        shapes = [(out, into) for into, out in sizes(setting.context_dim, training.hidden, setting.arms)]
        self.means = [draw_mean(self.streams, *shape) for shape in shapes]
        self.rhos = [draw_rho(self.streams, *shape) for shape in shapes]
        self.biases = [draw_mean(self.streams, out, 1) for out, _ in shapes]
        self._optimizer = torch.optim.Adam([*self.means, *self.rhos, *self.biases], lr=training.lr)

    def values(self, contexts: Tensor) -> Tensor:
        """The outputs of a network drawn from the posterior."""
        layers = [
            Layer(mean + rho.exp() * self.streams.normal(*mean.shape[1:]), bias)
            for mean, rho, bias in zip(self.means, self.rhos, self.biases, strict=True)
        ]
        return answer(layers, contexts)

    def learn(self) -> None:
        """Run one training."""
        for _ in range(self.training.steps):
            rows = self.streams.integers(len(self.history), self.training.batch)
            self._optimizer.zero_grad()
            self.loss(self.history.rows(rows)).backward()
            self._optimizer.step()

    def loss(self, seen: Seen) -> Tensor:
        """The negative evidence lower bound per observation, summed over trials."""
        error = (self._activations(seen) - seen.rewards).square().mean((1, 2))
        likelihood = -error / (2 * self._noise**2) - math.log(self._noise) - 0.5 * math.log(2 * math.pi)
        return (self.divergence() / len(self.history) - likelihood).sum()

    def divergence(self) -> Tensor:
        """`KL(q || prior)` of the weights, `(trials,)`."""
        return torch.stack(
            [_divergence(mean, rho, 2 / mean.shape[2]) for mean, rho in zip(self.means, self.rhos, strict=True)]
        ).sum(0)

    def _activations(self, seen: Seen) -> Tensor:
        """The outputs of the pulled arms with sampled activations, `(trials, 1, rows)`."""
        columns, last = seen.contexts, len(self.means) - 1
        for i, (mean, rho, bias) in enumerate(zip(self.means, self.rhos, self.biases, strict=True)):
            middle = torch.baddbmm(bias, mean, columns)
            variance = torch.bmm((2 * rho).exp(), columns.square())
            if i == last:
                middle, variance = middle.gather(1, seen.arms), variance.gather(1, seen.arms)
            drawn = middle + (variance + 1e-6).sqrt() * self.streams.normal(*middle.shape[1:])
            columns = drawn if i == last else drawn.relu()
        return columns


def _divergence(mean: Tensor, rho: Tensor, variance: float) -> Tensor:
    """`KL(N(mean, exp(2 rho)) || N(0, variance))`, summed over all but the first axis."""
    ratio = (2 * rho).exp() / variance
    return 0.5 * (mean.square() / variance + ratio - 1 - 2 * rho + math.log(variance)).sum((1, 2))
