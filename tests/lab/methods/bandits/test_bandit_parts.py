"""Random numbers, history, stacked networks and their optimiser, against plain ways to do the same."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from batchensemble.lab.methods.bandits import NetworkTraining, Streams
from batchensemble.lab.methods.bandits.history import History, Seen
from batchensemble.lab.methods.bandits.network import (
    Layer,
    RMSProp,
    draw_layers,
    forward,
    sizes,
    squared_error,
)


def test_a_trial_draws_the_same_beside_any_others():
    def draws(streams):
        shapes = torch.full((len(streams), 3), 2.5, dtype=torch.float64)
        return (
            streams.uniform(5, low=-1),
            streams.normal(40),
            streams.normal(3, dtype=torch.float64),
            streams.integers(9, 4),
            streams.coins(0.3, 20),
            streams.gamma(shapes),
            streams.integers(10**9),
        )

    alone, together = draws(Streams([7])), draws(Streams([3, 9, 7]))
    for one, many in zip(alone, together, strict=True):
        assert torch.equal(one[0], many[2])
        assert not torch.equal(many[0], many[1])


def test_the_draws_have_their_distributions():
    streams = Streams([0])
    count = 20_000
    assert stats.kstest(streams.uniform(count, low=-1.0)[0].double(), "uniform", (-1, 2)).pvalue > 1e-3
    assert stats.kstest(streams.normal(count)[0].double(), "norm").pvalue > 1e-3
    gamma = streams.gamma(torch.full((1, count), 6.5, dtype=torch.float64))
    assert stats.kstest(gamma[0], "gamma", (6.5,)).pvalue > 1e-3
    assert stats.chisquare(torch.bincount(streams.integers(7, count)[0])).pvalue > 1e-3
    assert abs(streams.coins(0.8, count).mean().item() - 0.8) < 0.015


@pytest.fixture
def history():
    """Observation t of trial i: the context is (i, t), the arm t % 3, the reward 100 i + t."""
    history = History(trials=2, context_dim=2, capacity=50)
    trial = torch.arange(2.0)
    for step in range(10):
        at = torch.full((2,), float(step))
        history.add(torch.stack([trial, at], 1), (at % 3).long(), 100 * trial + at)
    return history


def test_rows_of_every_network(history):
    numbers = torch.tensor([[0, 1, 2, 3, 4, 5], [9, 8, 7, 6, 5, 4]])
    seen = history.rows(numbers, nets=3)
    assert seen.contexts.shape == (6, 2, 2)
    assert seen.contexts[1].tolist() == [[0, 0], [2, 3]]  # second network of the first trial
    assert seen.rewards[:, 0].tolist() == [[0, 1], [2, 3], [4, 5], [109, 108], [107, 106], [105, 104]]
    assert torch.equal(seen.arms[:, 0], numbers.view(6, 2) % 3)


def test_everything_so_far(history):
    seen = history.all()
    assert seen.contexts.shape == (2, 2, 10)
    assert seen.rewards[1, 0].tolist() == list(range(100, 110))


def plain(layers, number):
    """One network of a stack as torch's own modules."""
    modules = []
    for weight, bias in layers:
        linear = nn.Linear(weight.shape[2], weight.shape[1]).to(weight.dtype)
        linear.load_state_dict({"weight": weight[number], "bias": bias[number, :, 0]})
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules[:-1])


@pytest.fixture
def layers():
    drawn = draw_layers(Streams([0, 1]), sizes(4, (6, 5), 3), 0.3, nets=3)
    return [Layer(weight.double(), bias.double() + 0.1) for weight, bias in drawn]


def test_a_stack_is_so_many_networks(layers):
    columns = torch.randn(6, 4, 7, dtype=torch.float64)
    features, outputs = forward(layers, columns)
    for number in range(6):
        net = plain(layers, number)
        torch.testing.assert_close(outputs[number].T, net(columns[number].T))
        torch.testing.assert_close(features[number].T, net[:-1](columns[number].T))


def test_networks_in_a_row_share_a_batch(layers):
    columns = torch.randn(2, 4, 7, dtype=torch.float64)
    shared = forward(layers, columns)[1]
    torch.testing.assert_close(shared, forward(layers, columns.repeat_interleave(3, 0))[1])


def test_how_networks_start():
    weight, bias = draw_layers(Streams([0]), [(100, 200)], 0.3)[0]
    assert stats.kstest(weight.flatten().double(), "uniform", (-0.3, 0.6)).pvalue > 1e-3
    assert not bias.any()


def test_only_pulled_arms_count():
    outputs = torch.tensor([[[1.0, 2.0], [5.0, 7.0]]])  # (nets, arms, rows)
    seen = Seen(torch.empty(0), torch.tensor([[[0, 1]]]), torch.tensor([[[0.0, 4.0]]]))
    assert squared_error(outputs, seen).tolist() == [(1 + 9) / 2]


@pytest.mark.parametrize("reset", [False, True])
def test_the_optimiser_is_the_benchmarks(reset):
    rng = np.random.default_rng(0)
    start = rng.normal(size=(2, 5))
    slopes = rng.normal(size=(6, 2, 5)) * np.array([10.0, 0.1])[:, None]  # one network is clipped, one is not
    parameter = torch.tensor(start, requires_grad=True)
    optimiser = RMSProp([parameter], NetworkTraining(lr=0.1, decay=0.5, clip=5.0))
    expected, squares = start.copy(), np.ones((2, 5))
    for number, slope in enumerate(slopes):
        if number == 3 and reset:
            optimiser.restart()
        optimiser.step((parameter * torch.tensor(slope)).sum())
        steps = number - 3 if reset and number >= 3 else number
        norm = np.linalg.norm(slope, axis=1, keepdims=True)
        slope = slope * np.minimum(1, 5 / norm)
        squares = 0.9 * squares + 0.1 * slope**2
        expected -= 0.1 / (1 + 0.5 * steps) * slope / np.sqrt(squares + 1e-10)
    np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-12)


def test_the_norm_of_a_network_is_over_all_its_parameters():
    parts = [torch.zeros(2, 3, requires_grad=True), torch.zeros(2, 1, 4, requires_grad=True)]
    optimiser = RMSProp(parts, NetworkTraining(lr=1.0, clip=1.0))
    scale = torch.tensor([100.0, 0.01])
    optimiser.step(sum((part * scale.view(2, *[1] * (part.ndim - 1))).sum() for part in parts))
    clipped = 100 / (100 * 7**0.5)
    assert parts[0][0, 0].item() == pytest.approx(-clipped / (0.9 + 0.1 * clipped**2) ** 0.5)
    assert parts[1][1, 0, 0].item() == pytest.approx(-0.01 / (0.9 + 0.1 * 0.01**2) ** 0.5)
