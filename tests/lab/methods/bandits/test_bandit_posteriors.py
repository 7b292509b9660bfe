"""Exact posteriors against textbooks; variational and alpha-divergence objectives against their definitions."""

import math

import numpy as np
import pytest
import torch
from scipy import linalg, stats
from test_bandit_ensembles import fed, started
from torch.distributions import Normal, kl_divergence

from batchensemble.lab.methods.bandits import (
    AlphaDivergence,
    BayesByBackprop,
    GaussianProcess,
    NetworkTraining,
    NeuralLinear,
    ParameterNoise,
    Prior,
    Streams,
)
from batchensemble.lab.methods.bandits.linear import Posterior
from batchensemble.lab.methods.bandits.network import forward

TRAINING = NetworkTraining(hidden=(6,), batch=16, steps=3, every=10)


@pytest.fixture
def observations():
    rng = np.random.default_rng(0)
    return rng.normal(size=(2, 300, 5)), rng.integers(3, size=(2, 300)), rng.normal(size=(2, 300))


def textbook(x, y, prior):
    precision = x.T @ x + prior.precision * np.eye(x.shape[1])
    mean = np.linalg.solve(precision, x.T @ y)
    a, b = prior.a + len(y) / 2, prior.b + 0.5 * (y @ y - mean @ precision @ mean)
    return mean, np.linalg.inv(precision), a, b


@pytest.mark.parametrize("way", ["one by one", "at once"])
def test_the_linear_posterior_is_the_textbooks(observations, way):
    x, arms, y = (torch.tensor(part) for part in observations)
    prior = Prior()
    posterior = Posterior(2, 3, 5, prior)
    if way == "at once":
        posterior.refit(x, arms, y)
    else:
        for step in range(300):
            posterior.observe(x[:, step], arms[:, step], y[:, step])
    for trial in range(2):
        for arm in range(3):
            mine = observations[1][trial] == arm
            mean, inverse, a, b = textbook(observations[0][trial][mine], observations[2][trial][mine], prior)
            np.testing.assert_allclose(posterior.mean[trial, arm], mean, rtol=1e-9)
            np.testing.assert_allclose(posterior.inverse[trial, arm], inverse, rtol=1e-9, atol=1e-14)
            np.testing.assert_allclose(posterior.shape[trial, arm], a)
            np.testing.assert_allclose(posterior.rate[trial, arm], b, rtol=1e-9)


def test_its_draws_follow_students_distribution(observations):
    x, arms, y = (torch.tensor(part[:1]) for part in observations)
    posterior = Posterior(1, 3, 5, Prior())
    posterior.refit(x[:, :20], arms[:, :20], y[:, :20])
    at, streams = torch.tensor([[1.0, -2.0, 0.5, 0.0, 1.0]], dtype=torch.float64), Streams([0])
    drawn = torch.stack([posterior.sample(at, streams)[0] for _ in range(4000)])
    for arm in range(3):
        mine = observations[1][0][:20] == arm
        mean, inverse, a, b = textbook(observations[0][0][:20][mine], observations[2][0][:20][mine], Prior())
        scale = math.sqrt(b / a * (at[0].numpy() @ inverse @ at[0].numpy()))
        expected = stats.t(2 * a, at[0].numpy() @ mean, scale)
        assert stats.kstest(drawn[:, arm], expected.cdf).pvalue > 1e-3


def test_neural_linear_regresses_on_the_features_of_now():
    agent = fed(started(NeuralLinear(training=TRAINING)), steps=23)  # trained at 20, three more since
    seen = agent.history.all()
    features = forward(agent.layers(), seen.contexts)[0].mT
    expected = Posterior(2, 3, 6, Prior())
    expected.refit(features.detach(), seen.arms[:, 0], seen.rewards[:, 0])
    torch.testing.assert_close(agent.posterior.mean, expected.mean)
    torch.testing.assert_close(agent.posterior.rate, expected.rate)


@pytest.mark.parametrize(("noise", "grows"), [(1e-4, True), (10.0, False)])
def test_parameter_noise_is_as_strong_as_it_may(noise, grows):
    agent = fed(started(ParameterNoise(noise=noise, training=TRAINING)), steps=20)
    factor = 1.01**2 if grows else 1.01**-2
    torch.testing.assert_close(agent.noise, torch.full((2, 1, 1), noise * factor))
    assert agent._eps == pytest.approx(0.1 * 0.99**2)


def test_shaken_networks_are_shaken_by_that_much():
    agent = started(ParameterNoise(noise=0.5, training=TRAINING))
    shaken = torch.stack([agent._shaken()[0].weight - agent.layers()[0].weight for _ in range(300)])
    assert shaken.std().item() == pytest.approx(0.5, rel=0.03)


def test_the_divergence_of_bayes_by_backprop_is_torchs():
    agent = fed(started(BayesByBackprop(training=TRAINING)), steps=10)
    expected = sum(
        kl_divergence(Normal(mean, rho.exp()), Normal(0, (2 / mean.shape[2]) ** 0.5)).sum((1, 2))
        for mean, rho in zip(agent.means, agent.rhos, strict=True)
    )
    torch.testing.assert_close(agent.divergence(), expected)


def test_without_spread_its_loss_is_the_plain_likelihood():
    agent = fed(started(BayesByBackprop(training=TRAINING)), steps=10)
    with torch.no_grad():
        for rho in agent.rhos:
            rho.fill_(-30)  # what is left of the noise is sqrt(1e-6) in every activation
    seen = agent.history.all()
    outputs = _outputs(agent, seen)
    likelihood = Normal(outputs.gather(1, seen.arms), 0.1).log_prob(seen.rewards).mean((1, 2))
    expected = (agent.divergence() / 10 - likelihood).sum()
    assert agent.loss(seen).item() == pytest.approx(expected.item(), rel=1e-3)


def _outputs(agent, seen):
    columns = seen.contexts
    for mean, bias in zip(agent.means, agent.biases, strict=True):
        columns = mean @ (columns if columns is seen.contexts else columns.relu()) + bias
    return columns


def test_activations_are_drawn_as_weights_would_make_them():
    agent = started(BayesByBackprop(training=NetworkTraining(hidden=())))
    with torch.no_grad():
        agent.rhos[0].fill_(-1.0)
    contexts, arms = torch.randn(2, 4), torch.tensor([1, 2])
    agent.history.add(contexts, arms, torch.zeros(2))
    seen = agent.history.rows(torch.zeros(2, 4000, dtype=torch.int64))
    local = agent._activations(seen)[:, 0].detach()
    global_ = torch.stack([agent.values(contexts)[torch.arange(2), arms].detach() for _ in range(4000)], 1)
    for trial in range(2):
        assert stats.ks_2samp(local[trial], global_[trial]).pvalue > 1e-3


def test_the_alpha_energy_is_its_definition():
    """Hernandez-Lobato et al., equation 14, written out with site factors and log-partition functions."""
    method = AlphaDivergence(alpha=0.7, samples=4, training=TRAINING)
    ours, twin = (fed(started(method), steps=8) for _ in range(2))
    seen = ours.history.all()
    n, rows = len(ours.history), seen.arms.shape[2]
    noises = [twin.streams.normal(4, *mean.shape[1:]).double() for mean in twin.means]
    means, sigmas = ([part.double() for part in parts] for parts in (twin.means, [rho.exp() for rho in twin.rhos]))
    drawn = [m[:, None] + s[:, None] * e for m, s, e in zip(means, sigmas, noises, strict=True)]
    log_f = sum(
        (w * m[:, None] / (n * s[:, None] ** 2) + w**2 / (2 * n) * (1 / 0.1 - 1 / s[:, None] ** 2)).sum((2, 3))
        for w, m, s in zip(drawn, means, sigmas, strict=True)
    )
    log_z = sum((m**2 / (2 * s**2) + s.log()).sum((1, 2)) for m, s in zip(means, sigmas, strict=True))
    spread = (twin.noise_mean + twin.noise_rho.exp() * twin.streams.normal(3)).exp().double() * 0.1
    energy = []
    for trial in range(2):
        likelihood = []
        for k in range(4):
            w1, b1, w2, b2 = (part[trial, k] for part in drawn)
            outputs = w2 @ (w1 @ seen.contexts[trial].double() + b1).relu() + b2
            arms = seen.arms[trial, 0]
            chosen = outputs[arms, torch.arange(rows)]
            likelihood.append(Normal(chosen, spread[trial, arms]).log_prob(seen.rewards[trial, 0].double()))
        ratio = 0.7 * (torch.stack(likelihood) - log_f[trial][:, None])
        evidence = (ratio.exp().mean(0)).log().sum()
        energy.append(-log_z[trial] - n / (rows * 0.7) * evidence)
    torch.testing.assert_close(ours.energy(seen).double(), torch.stack(energy), rtol=1e-4, atol=1e-2)


@pytest.fixture
def process():
    agent = fed(started(GaussianProcess(points=15, every=10, steps=5), steps=60), steps=20)
    return agent


def covariance(kernel, first, second, trial):
    """The kernel of one trial, written with numpy."""
    soft = {name: np.log1p(np.exp(part.detach().numpy()[trial])) for name, part in kernel.named_parameters()}
    z = kernel.embeddings.detach().numpy()[trial]
    out = np.zeros((len(first), len(second)))
    for i, one in enumerate(first):
        for j, two in enumerate(second):
            r = np.sqrt(3) * np.linalg.norm((one[:-1] - two[:-1]) / soft["raw_lengths"][0])
            linear = ((one[:-1] / soft["raw_linear_lengths"][0]) * (two[:-1] / soft["raw_linear_lengths"][0])).sum()
            smooth = soft["raw_amplitude"][0, 0] * (1 + r) * np.exp(-r) + soft["raw_linear"][0, 0] * linear
            out[i, j] = smooth * np.exp(-((z[int(one[-1])] - z[int(two[-1])]) ** 2).sum())
    return out


def test_the_process_has_the_posterior_of_its_kernel(process):
    model = process._process._model
    rows, targets = model.train_inputs[0].numpy(), model.train_targets.numpy()
    assert rows.shape == (2, 15, 5)  # the first fifteen observations, for ever
    contexts = torch.randn(2, 4, dtype=torch.float64)
    mean, spread = process._process.posterior(contexts)
    for trial in range(2):
        at = np.column_stack([np.repeat(contexts[trial : trial + 1].numpy(), 3, 0), np.arange(3)])
        noise = model.likelihood.noise[trial].item()
        inside = covariance(model.kernel, rows[trial], rows[trial], trial) + noise * np.eye(15)
        across = covariance(model.kernel, at, rows[trial], trial)
        np.testing.assert_allclose(mean[trial], across @ np.linalg.solve(inside, targets[trial]), rtol=1e-5, atol=1e-7)
        left = covariance(model.kernel, at, at, trial) - across @ np.linalg.solve(inside, across.T)
        np.testing.assert_allclose(spread[trial], left, rtol=1e-4, atol=1e-6)


def test_rewards_are_standardised_arm_by_arm(process):
    model = process._process._model
    for trial in range(2):
        arms = model.train_inputs[0][trial, :, -1]
        for arm in arms.unique():
            mine = model.train_targets[trial][arms == arm]
            assert mine.mean().item() == pytest.approx(0, abs=1e-6)
            if len(mine) > 2:
                assert mine.std(correction=0).item() == pytest.approx(1, rel=0.01)


def test_fitting_makes_the_data_likelier(process):
    objective, model = process._process._objective, process._process._model

    def value():
        model.train()
        return objective(model(model.train_inputs[0]), model.train_targets).sum().item()

    before = value()
    process._process.fit(20)
    assert value() > before


@pytest.mark.parametrize("spread", ["root", "covariance"])
def test_draws_from_the_process(spread):
    method = GaussianProcess(points=15, every=10, steps=2, spread=spread)
    agent, twin = (fed(started(method, steps=60), steps=20) for _ in range(2))
    contexts = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))
    mean, covariance = twin._process.posterior(contexts.double())
    noise = twin.streams.normal(3, 1, dtype=torch.float64).numpy()
    for trial, value in enumerate(agent.values(contexts)):
        matrix = covariance[trial].numpy()
        root = linalg.sqrtm(matrix).real if spread == "root" else matrix
        drawn = mean[trial].numpy() + (root @ noise[trial])[:, 0]
        np.testing.assert_allclose(value, drawn * twin._scale[trial].numpy() + twin._mean[trial].numpy(), rtol=1e-5)
