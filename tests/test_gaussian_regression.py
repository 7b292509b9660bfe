"""Regression with noise that depends on the input: a mean and a log-variance, in one output or in two."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import gaussian_nll_loss

import batchensemble as be

M = 4


class Two(nn.Module):
    """The same network as `Sequential` below, its columns apart."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.net(x).unbind(-1)


def moments(outputs: Tensor) -> Tensor:
    means, noise = outputs[..., 0], outputs[..., 1].exp()
    return torch.stack([means.mean(0), noise.mean(0) + means.var(0, correction=0)], -1)


def gaussian(output: Tensor, y: Tensor) -> Tensor:
    return gaussian_nll_loss(output[:, 0], y, output[:, 1].exp())


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double()


def ensembles() -> tuple[be.Ensemble, be.Ensemble]:
    """One output and two, with the same members."""
    one, two = (
        be.convert(net, M, combine=rule, generator=torch.Generator().manual_seed(1))
        for net, rule in ((network(), moments), (Two(network()), "mean"))
    )
    return one, two


def data(rows: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(rows)
    return torch.randn(rows, 3).double(), torch.randn(rows).double()


def gradients(model: be.Ensemble, loss: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("rows", [M, 10, 12])
def test_in_a_split_batch_every_row_counts_for_its_member(rows: int) -> None:
    one, two = ensembles()
    x, y = data(rows)
    answers = [one.extract(n * M // rows)(x[n]) for n in range(rows)]
    expected = sum(0.5 * (a[1] + (y[n] - a[0]).square() / a[1].exp()) for n, a in enumerate(answers)) / rows
    mean, log_variance = two(x)
    for loss in (gaussian(one(x), y), gaussian_nll_loss(mean, y, log_variance.exp())):
        torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("rows", [2, M, 10])
def test_in_a_repeated_batch_the_loss_is_the_mean_of_the_members_losses(rows: int) -> None:
    one, two = ensembles()
    x, y = data(rows)
    expected = sum(gaussian(one(x, member=i), y) for i in range(M)) / M
    loss = be.mean_loss(gaussian, one.members(x), y)
    means, log_variances = two.members(x)
    both = gaussian_nll_loss(means, y.expand_as(means), log_variances.exp())
    torch.testing.assert_close([loss, both], [expected, expected])
    torch.testing.assert_close(gradients(one, loss), gradients(two, both))


def test_the_total_variance_is_that_of_the_mixture() -> None:
    one, two = ensembles()
    x, _ = data(5)
    p = one.predict(x)
    means, deviations = p.outputs[..., 0], (p.outputs[..., 1] / 2).exp()
    mean, variance = p.combined.unbind(-1)
    drawn = means + deviations * torch.randn(100_000, M, 5, dtype=torch.float64)
    torch.testing.assert_close(drawn.mean((0, 1)), mean, atol=0.02, rtol=0.0)
    torch.testing.assert_close(drawn.transpose(0, 1).reshape(-1, 5).var(0), variance, atol=0.0, rtol=0.03)
    torch.testing.assert_close(one.eval()(x), p.combined)
    torch.testing.assert_close(torch.stack(two.members(x), -1), p.outputs)
    torch.testing.assert_close(two.predict(x).mean, mean)
