"""What of the norms is a task's own: statistics around one scale and shift, or all of it."""

import pytest
import torch
from small_tasks import QUICK, data, net
from torch import nn

import batchensemble as be
from batchensemble.lifelong import Learner
from batchensemble.lifelong.statistics import own_statistics_


def ensemble(members: int = 2) -> be.Ensemble:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.BatchNorm2d(3, track_running_stats=False))
    model = be.convert(net, members, init="ones", combine=None)
    own_statistics_(model)
    return model


def test_only_statistics_have_a_row_per_member() -> None:
    norm, without = ensemble().net[1], ensemble().net[3]
    assert norm.running_mean.shape == norm.running_var.shape == (2, 3)
    assert norm.weight.shape == norm.bias.shape == (3,)
    assert isinstance(without, nn.BatchNorm2d)
    assert without.running_mean is None


def test_each_member_normalises_as_torch_would_by_its_own_rows() -> None:
    model = ensemble().train()
    x = torch.randn(8, 1, 5, 5)
    with torch.no_grad():
        model.net[1].weight.uniform_(0.5, 2)
        model.net[1].bias.normal_()
    ids = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    plain = nn.BatchNorm2d(3).train()
    plain.load_state_dict({**plain.state_dict(), "weight": model.net[1].weight, "bias": model.net[1].bias})
    model.net[3] = nn.Identity()
    found = model(x, member=ids)
    convolved = nn.functional.conv2d(x, model.net[0].weight, model.net[0].bias[0])
    expected = torch.cat([torch.relu(plain(convolved[ids == i])) for i in range(2)])
    torch.testing.assert_close(found, expected)


def test_an_extracted_member_has_its_own_statistics() -> None:
    model = ensemble()
    model.train()(torch.randn(8, 1, 5, 5) + 3, member=1)
    model.eval()
    x = torch.randn(4, 1, 5, 5)
    model.net[3] = nn.Identity()
    for member in range(2):
        plain = model.extract(member)
        assert type(plain[1]) is nn.BatchNorm2d
        torch.testing.assert_close(plain.eval()(x), model(x, member=member))
    assert not torch.equal(model(x, member=0), model(x, member=1))


@pytest.mark.parametrize("momentum", [0.1, None])
def test_one_member_alone_takes_the_same_values_as_among_others(momentum: float | None) -> None:
    alone, mixed = ensemble().train(), ensemble().train()
    for model in (alone, mixed):
        model.net[1].momentum = momentum
        model.net[3] = nn.Identity()
    for seed in range(3):
        x = torch.randn(8, 1, 5, 5, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(alone(x, member=1), mixed(x, member=torch.ones(8, dtype=torch.long)))
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        torch.testing.assert_close(getattr(alone.net[1], name), getattr(mixed.net[1], name))
    assert alone.net[1].num_batches_tracked.tolist() == [0, 3]


def after_two_tasks(learner: Learner) -> nn.Module:
    """The batch norm after two tasks with different inputs."""
    x, labels = data(0)
    learner.learn((x, labels), "here")
    learner.learn((x + 9, labels), "there")
    norm: nn.Module = learner.network.ensemble.net[1]
    return norm


@pytest.mark.filterwarnings("ignore::batchensemble.lifelong.StalledTask")
def test_norm_says_what_of_the_norms_is_a_tasks_own() -> None:
    def norm_after_two(norm: str) -> nn.Module:
        return after_two_tasks(Learner(net(), head=32, norm=norm, training=QUICK))

    shared, statistics, member = map(norm_after_two, ("shared", "statistics", "member"))
    assert shared.running_mean.shape == shared.weight.shape == statistics.weight.shape == (64,)
    assert statistics.running_mean.shape == member.running_mean.shape == member.weight.shape == (2, 64)
    assert not torch.equal(statistics.running_mean[0], statistics.running_mean[1])


@pytest.mark.filterwarnings("ignore::batchensemble.lifelong.StalledTask")
def test_a_norm_that_is_left_out_shares_all_but_its_statistics() -> None:
    left_out = after_two_tasks(Learner(net(), head=32, exclude="1", training=QUICK))
    assert left_out.weight.shape == (64,)
    assert left_out.running_mean.shape == (2, 64)
    assert not torch.equal(left_out.running_mean[0], left_out.running_mean[1])
