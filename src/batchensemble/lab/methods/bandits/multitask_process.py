"""The Gaussian process itself, in GPyTorch, with all trials as one batch. Imported only where it is used."""

import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.priors import NormalPrior
from torch import Tensor, nn
from torch.nn.functional import one_hot, softplus


class ArmKernel(gpytorch.kernels.Kernel):  # type: ignore[misc]
    """`(v matern(x / l, x' / l) + u (x / h) . (x' / h)) exp(-|z_a - z_b|^2)` for context x and arm a in one row.

    One dense kernel instead of GPyTorch's sum and product of kernels: their lazy product is factorised again in every
    step, which takes several times as long.

    Args:
        embeddings: initial z, `(trials, arms, width)`.
        context_dim: width of x.
    """

    def __init__(self, embeddings: Tensor, context_dim: int) -> None:
        trials, self._arms = embeddings.shape[0], embeddings.shape[1]
        super().__init__(batch_shape=torch.Size([trials]))
        zeros = embeddings.new_zeros
        self.embeddings = nn.Parameter(embeddings.clone())
        self.raw_lengths, self.raw_linear_lengths = (nn.Parameter(zeros(trials, 1, context_dim)) for _ in range(2))
        self.raw_amplitude, self.raw_linear = (nn.Parameter(zeros(trials, 1, 1) + 1) for _ in range(2))
        self.register_prior("amplitude_prior", _normal(1.0), lambda kernel: kernel.raw_amplitude)
        self.register_prior("linear_prior", _normal(1.0), lambda kernel: kernel.raw_linear)
        self.register_prior("embedding_prior", _normal(10.0), lambda kernel: kernel.embeddings)

    def forward(self, first: Tensor, second: Tensor, diag: bool = False, **_: object) -> Tensor:
        """Map `(trials, n, context_dim + 1)` and the same for m, arms in the last column, to `(trials, n, m)`."""
        lengths, linear = (softplus(raw.clamp(-5, 5)) for raw in (self.raw_lengths, self.raw_linear_lengths))
        amplitude, slope = softplus(self.raw_amplitude), softplus(self.raw_linear)
        x, y = first[..., :-1], second[..., :-1]
        if diag:  # GPyTorch requests it for equal arguments only
            return (amplitude + slope * ((x / linear) * (y / linear)).sum(-1, keepdim=True))[..., 0]
        root = (3 * _squared_distance(x / lengths, y / lengths) + 1e-16).sqrt()
        smooth = amplitude * (1 + root) * (-root).exp()
        arms = (-_squared_distance(self.embeddings, self.embeddings)).exp()
        between = self._picked(first) @ arms @ self._picked(second).mT
        return (smooth + slope * ((x / linear) @ (y / linear).mT)) * between

    def _picked(self, rows: Tensor) -> Tensor:
        return one_hot(rows[..., -1].long(), self._arms).to(rows.dtype)


class MultitaskProcess:
    """A zero-mean process with noise, one for every trial.

    Args:
        embeddings: initial embeddings of the arms, `(trials, arms, width)`.
        context_dim: width of a context.
        lr: learning rate of Adam.
    """

    def __init__(self, embeddings: Tensor, context_dim: int, lr: float) -> None:
        trials, self._arms = embeddings.shape[0], embeddings.shape[1]
        noise = gpytorch.likelihoods.GaussianLikelihood(batch_shape=torch.Size([trials]))
        self._model = _Process(noise.to(embeddings), ArmKernel(embeddings, context_dim)).to(embeddings)
        self._objective = gpytorch.mlls.ExactMarginalLogLikelihood(noise, self._model)
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=lr)
        self.conditioned = False

    def condition(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """Condition on `(trials, n, context_dim)`, `(trials, n)`, `(trials, n)`, and on nothing else."""
        self._model.set_train_data((_rows(contexts, arms),), rewards, strict=False)
        self.conditioned = True

    def fit(self, steps: int) -> None:
        """Take steps of Adam on the marginal likelihood and the priors."""
        self._model.train()
        rows, rewards = self._model.train_inputs[0], self._model.train_targets
        with gpytorch.settings.max_cholesky_size(rewards.shape[1] + 1):  # exact, never conjugate gradients
            for _ in range(steps):
                self._optimizer.zero_grad()
                (-self._objective(self._model(rows), rewards).sum()).backward()
                self._optimizer.step()

    def posterior(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Mean `(trials, arms)` and covariance of all arms' rewards at `contexts (trials, context_dim)`."""
        trials, width = contexts.shape
        arms = torch.arange(self._arms, device=contexts.device).expand(trials, -1)
        self._model.eval()
        size = gpytorch.settings.max_cholesky_size(self._model.train_targets.shape[1] + 1)
        with torch.no_grad(), gpytorch.settings.fast_pred_var(), size:
            found = self._model(_rows(contexts[:, None].expand(trials, self._arms, width), arms))
            return found.mean, found.covariance_matrix


class _Process(gpytorch.models.ExactGP):  # type: ignore[misc]
    def __init__(self, noise: gpytorch.likelihoods.GaussianLikelihood, kernel: ArmKernel) -> None:
        super().__init__(None, None, noise)
        self.mean, self.kernel = gpytorch.means.ZeroMean(batch_shape=kernel.batch_shape), kernel

    def forward(self, rows: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean(rows), self.kernel(rows))


def _rows(contexts: Tensor, arms: Tensor) -> Tensor:
    return torch.cat([contexts, arms[..., None].to(contexts.dtype)], -1)


def _squared_distance(first: Tensor, second: Tensor) -> Tensor:
    """`|x - y|^2` of all pairs, without a tensor of differences."""
    squares = first.square().sum(-1)[..., None] + second.square().sum(-1)[..., None, :]
    return (squares - 2 * first @ second.mT).clamp(min=0)


def _normal(scale: float) -> NormalPrior:
    return NormalPrior(0.0, scale)
