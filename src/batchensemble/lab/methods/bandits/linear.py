"""Bayesian linear regression for every arm: exact posteriors, exactly sampled."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.streams import Streams


@dataclass(frozen=True)
class Prior:
    """Prior of an arm's noise, `sigma^2 ~ InvGamma(a, b)`, and of its coefficients, `N(0, sigma^2 / precision)`."""

    a: float = 6.0
    b: float = 6.0
    precision: float = 0.25


class Posterior:
    """Posterior of every arm's linear reward, `y = beta . x + noise`, in all trials.

        P = X'X + lambda I,   m = P^-1 X'y,   a = a0 + n / 2,   b = b0 + (y'y - m'Pm) / 2

    The inverse of P is kept up to date by rank-one updates, so an observation costs the square of the width, not its
    cube.

    Args:
        trials: number of games.
        arms: arms in each.
        width: width of a context.
        prior: distribution before the first observation.
        device: where it is kept; everything is float64.
    """

    def __init__(self, trials: int, arms: int, width: int, prior: Prior, device: torch.device | str = "cpu") -> None:
        eye = torch.eye(width, dtype=torch.float64, device=device)
        self.prior = prior
        self.inverse = (eye / prior.precision).repeat(trials, arms, 1, 1)
        self.moment, self.mean = (eye.new_zeros(trials, arms, width) for _ in range(2))  # X'y and m
        self.square, self.count = (eye.new_zeros(trials, arms) for _ in range(2))  # y'y and n
        self._trials = torch.arange(trials, device=device)

    def observe(self, x: Tensor, arms: Tensor, y: Tensor) -> None:
        """Add one observation of every trial: `(trials, width)`, `(trials,)`, `(trials,)`."""
        at, x, y = (self._trials, arms), x.double(), y.double()
        inverse = self.inverse[at]
        gain = (inverse @ x[..., None])[..., 0]
        inverse -= gain[:, :, None] * (gain / (1 + (gain * x).sum(1, keepdim=True)))[:, None]
        self.inverse[at] = inverse
        self.moment[at] += y[:, None] * x
        self.mean[at] = (inverse @ self.moment[at][..., None])[..., 0]
        self.square[at] += y.square()
        self.count[at] += 1

    def refit(self, x: Tensor, arms: Tensor, y: Tensor) -> None:
        """Recompute the posterior from all observations: `(trials, n, width)`, `(trials, n)`, `(trials, n)`."""
        x, y = x.double(), y.double()
        eye = self.prior.precision * torch.eye(x.shape[2], dtype=x.dtype, device=x.device)
        for arm in range(self.mean.shape[1]):
            mine = (arms == arm).double()
            chosen = x * mine[..., None]
            self.inverse[:, arm] = torch.cholesky_inverse(torch.linalg.cholesky(chosen.mT @ x + eye))
            self.moment[:, arm] = (chosen.mT @ y[..., None])[..., 0]
            self.square[:, arm], self.count[:, arm] = (mine * y.square()).sum(1), mine.sum(1)
        self.mean = (self.inverse @ self.moment[..., None])[..., 0]

    def sample(self, x: Tensor, streams: Streams) -> Tensor:
        """Sample every arm's value at `x (trials, width)`, `(trials, arms)`.

        A sample of beta is only ever multiplied by one x, and `x . beta ~ N(x . m, sigma^2 x' P^-1 x)`: so that number
        is drawn instead of beta.
        """
        x = x.double()[:, None, :, None]
        spread = (x * (self.inverse @ x)).sum((2, 3))
        noise = self.rate / streams.gamma(self.shape)  # sigma^2
        mean = (self.mean * x[..., 0]).sum(2)
        return mean + (noise * spread).sqrt() * streams.normal(self.mean.shape[1], dtype=torch.float64)

    @property
    def shape(self) -> Tensor:
        """a, `(trials, arms)`."""
        return self.prior.a + self.count / 2

    @property
    def rate(self) -> Tensor:
        """b, `(trials, arms)`; `m'Pm = m . X'y`."""
        return self.prior.b + (self.square - (self.mean * self.moment).sum(2)) / 2


@dataclass(frozen=True)
class Linear:
    """The benchmark's `LinFullPost`: Thompson sampling with an exact linear posterior for every arm.

    Args:
        prior: prior of noise and coefficients.
        first_pulls: pulls of every arm, in turn, at first.
    """

    prior: Prior = field(default_factory=Prior)
    first_pulls: int = 2

    def start(self, setting: Setting) -> "LinearAgent":
        """Start the algorithm at the beginning of its games."""
        return LinearAgent(setting, self)


class LinearAgent:
    """`Linear` while it plays."""

    def __init__(self, setting: Setting, method: Linear) -> None:
        self._setting, self._pulls, self._in_turn = setting, 0, method.first_pulls * setting.arms
        width, device = setting.context_dim + 1, setting.streams.device
        self.posterior = Posterior(setting.trials, setting.arms, width, method.prior, device)

    def act(self, contexts: Tensor) -> Tensor:
        """The arm whose sampled value is largest."""
        if self._pulls < self._in_turn:
            return torch.full((len(contexts),), self._pulls % self._setting.arms, device=contexts.device)
        return self.posterior.sample(_with_one(contexts), self._setting.streams).argmax(1)

    def update(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """Update the posterior, exactly and at once."""
        self._pulls += 1
        self.posterior.observe(_with_one(contexts), arms, rewards)


def _with_one(contexts: Tensor) -> Tensor:
    return torch.cat([contexts, torch.ones_like(contexts[:, :1])], 1)
