"""A Gaussian process over contexts and arms, with correlations over both."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from batchensemble.extras import require
from batchensemble.lab.methods.bandits.agent import Agent
from batchensemble.lab.methods.bandits.algorithm import Setting


@dataclass(frozen=True)
class GaussianProcess:
    """The benchmark's `MultitaskGP`: Matern 3/2 plus linear kernel, times a kernel of learned embeddings of the arms.

    Rewards are standardised arm by arm. Needs GPyTorch.

    Args:
        points: most observations to condition on; once there are more, it keeps the first ones.
        every: pulls between two fits.
        steps: steps of Adam on the marginal likelihood per fit.
        lr: learning rate of Adam.
        embedding: width of an arm's embedding.
        spread: how values are drawn from mean m and covariance C: `root` is correct, `m + C^(1/2) e`; `covariance` is
            what the benchmark's code does, `m + C e`.
        first_pulls: pulls of every arm, in turn, at first.
    """

    points: int = 1000
    every: int = 50
    steps: int = 100
    lr: float = 0.01
    embedding: int = 5
    spread: Literal["root", "covariance"] = "root"
    first_pulls: int = 2

    def start(self, setting: Setting) -> "GaussianProcessAgent":
        """Start the algorithm at the beginning of its games."""
        return GaussianProcessAgent(setting, self)


class GaussianProcessAgent(Agent):
    """`GaussianProcess` while it plays."""

    def __init__(self, setting: Setting, method: GaussianProcess) -> None:
        require("MultitaskGP", "bandits", "gpytorch")
        from batchensemble.lab.methods.bandits.multitask_process import MultitaskProcess

        super().__init__(setting, method.every, method.first_pulls)
        self._method = method
        embeddings = self.streams.normal(setting.arms, method.embedding, dtype=torch.float64)
        self._process = MultitaskProcess(embeddings, setting.context_dim, method.lr)
        self._mean = self._scale = embeddings.new_zeros(setting.trials, setting.arms)

    def values(self, contexts: Tensor) -> Tensor:
        """Draw from the joint posterior of all arms at the context."""
        if not self._process.conditioned:
            self._condition()
        mean, covariance = self._process.posterior(contexts.double())
        noise = self.streams.normal(self.setting.arms, 1, dtype=torch.float64)
        root = covariance if self._method.spread == "covariance" else _root(covariance)
        value: Tensor = (mean + (root @ noise)[..., 0]) * self._scale + self._mean
        return value

    def learn(self) -> None:
        """Condition on the observations, and fit the kernel to them."""
        self._condition()
        self._process.fit(self._method.steps)

    def _condition(self) -> None:
        some = slice(0, min(len(self.history), self._method.points))
        contexts, arms = self.history.contexts[:, some].double(), self.history.arms[:, some]
        rewards = self.history.rewards[:, some].double()
        self._mean, self._scale = _moments(rewards, torch.nn.functional.one_hot(arms, self.setting.arms).double())
        self._process.condition(contexts, arms, (rewards - self._mean.gather(1, arms)) / self._scale.gather(1, arms))


def _moments(rewards: Tensor, pulled: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of every arm's rewards, `(trials, arms)`; mean zero if never pulled."""
    counts = pulled.sum(1).clamp(min=1)
    mean = (rewards[..., None] * pulled).sum(1) / counts
    variance = ((rewards[..., None] - mean[:, None]).square() * pulled).sum(1) / counts
    return mean, (variance + 1e-4).sqrt()


def _root(covariance: Tensor) -> Tensor:
    """A symmetric square root; eigenvalues that rounding makes negative count as zero."""
    values, vectors = torch.linalg.eigh(covariance)
    root: Tensor = vectors * values.clamp(min=0).sqrt()[:, None] @ vectors.mT
    return root
