"""Black-box alpha-divergence minimisation: a Gaussian for every weight, fitted to cover the posterior."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from batchensemble.lab.methods.bandits.agent import Agent
from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.gaussian import draw_mean, draw_rho
from batchensemble.lab.methods.bandits.history import Seen
from batchensemble.lab.methods.bandits.network import Layer, NetworkTraining, answer, forward, sizes


@dataclass(frozen=True)
class AlphaDivergence:
    """The benchmark's `AlphaDiv`: weights and biases `N(mu, exp(rho)^2)`, prior `N(0, prior_variance)`.

    Minimises the energy of Hernandez-Lobato et al. (2016). With `w_k = mu + exp(rho) e_k` it is, up to a constant,

        -sum rho - n / (rows alpha) sum_i log mean_k exp(alpha (log p(y_i | w_k) - c_k / n)),
        c_k = sum w_k^2 / (2 prior_variance) - e_k^2 / 2

    (the terms `mu^2 / sigma^2` of the log-partition function and of the site factors cancel exactly).

    Args:
        alpha: 1 covers the posterior; towards 0 it becomes variational inference.
        samples: sampled networks that estimate the expectation.
        prior_variance: prior variance of every weight.
        noise: initial standard deviation of a reward; trained, as a log-normal for every arm.
        training: how it is trained, except that Adam is used with a constant `lr` and without clipping.
    """

    alpha: float = 1.0
    samples: int = 10
    prior_variance: float = 0.1
    noise: float = 0.1
    training: NetworkTraining = field(default_factory=NetworkTraining)

    def start(self, setting: Setting) -> "AlphaDivergenceAgent":
        """Start the algorithm at the beginning of its games."""
        return AlphaDivergenceAgent(setting, self)


class AlphaDivergenceAgent(Agent):
    """`AlphaDivergence` while it plays."""

    def __init__(self, setting: Setting, method: AlphaDivergence) -> None:
        training = method.training
        super().__init__(setting, training.every, training.first_pulls)
        self.method = method
        pairs = sizes(setting.context_dim, training.hidden, setting.arms)
        shapes = [shape for into, out in pairs for shape in ((out, into), (out, 1))]
        self.means = [draw_mean(self.streams, *shape) for shape in shapes]
        self.rhos = [draw_rho(self.streams, *shape) for shape in shapes]
        self.noise_mean, self.noise_rho = (draw(self.streams, setting.arms) for draw in (draw_mean, draw_rho))
        parameters = [*self.means, *self.rhos, self.noise_mean, self.noise_rho]
        self._optimizer = torch.optim.Adam(parameters, lr=training.lr)

    def values(self, contexts: Tensor) -> Tensor:
        """The outputs of a network drawn from the posterior."""
        layers, _ = self._networks(1)
        return answer(layers, contexts)

    def learn(self) -> None:
        """Run one training."""
        for _ in range(self.method.training.steps):
            rows = self.streams.integers(len(self.history), self.method.training.batch)
            self._optimizer.zero_grad()
            self.energy(self.history.rows(rows)).sum().backward()
            self._optimizer.step()

    def energy(self, seen: Seen) -> Tensor:
        """The energy to minimise, `(trials,)`."""
        alpha, count, rows = self.method.alpha, len(self.history), seen.arms.shape[2]
        layers, cost = self._networks(self.method.samples)
        outputs = forward(layers, seen.contexts)[1].unflatten(0, (self.setting.trials, -1))
        ratio = alpha * (self._likelihood(outputs, seen) - cost[..., None] / count)  # (trials, samples, rows)
        evidence = (ratio.logsumexp(1) - math.log(self.method.samples)).sum(1)
        entropy = torch.stack([rho.sum((1, 2)) for rho in self.rhos]).sum(0)
        return -entropy - count / (rows * alpha) * evidence

    def _networks(self, samples: int) -> tuple[list[Layer], Tensor]:
        """Draw networks for every trial, and return them with their `c_k (trials, samples)`."""
        parts, cost = [], torch.zeros(self.setting.trials, samples, device=self.streams.device)
        for mean, rho in zip(self.means, self.rhos, strict=True):
            noise = self.streams.normal(samples, *mean.shape[1:])
            drawn = mean[:, None] + rho.exp()[:, None] * noise
            cost = cost + (drawn.square() / self.method.prior_variance - noise.square()).sum((2, 3)) / 2
            parts.append(drawn.flatten(0, 1))
        return [Layer(weight, bias) for weight, bias in zip(parts[::2], parts[1::2], strict=True)], cost

    def _likelihood(self, outputs: Tensor, seen: Seen) -> Tensor:
        """`log p(y | w_k)` of the pulled arms: `(trials, samples, arms, rows) -> (trials, samples, rows)`."""
        drawn = self.noise_mean + self.noise_rho.exp() * self.streams.normal(self.setting.arms)
        log_noise = (drawn + math.log(self.method.noise)).gather(1, seen.arms[:, 0])[:, None]
        arms = seen.arms[:, None].expand(-1, outputs.shape[1], -1, -1)
        error = outputs.gather(2, arms)[:, :, 0] - seen.rewards
        return -error.square() * (-2 * log_noise).exp() / 2 - log_noise - 0.5 * math.log(2 * math.pi)
