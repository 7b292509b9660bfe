"""Growth is hidden from earlier tasks, and new units begin without saying anything to old ones."""

import pytest
import torch
from torch import nn

from batchensemble.lab.methods.lifelong import lenet_trunk, resnet18_trunk
from batchensemble.lab.methods.lifelong.growing import Growing, hold

X = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def net() -> Growing:
    generator = torch.Generator().manual_seed(0)
    return Growing(lenet_trunk(generator), generator)


def test_it_is_the_network_it_was_made_of() -> None:
    generator = torch.Generator().manual_seed(0)
    plain = lenet_trunk(generator)
    expected = plain(X)
    torch.testing.assert_close(Growing(plain, generator)(X, (6, 16, 120, 84)), expected)


def test_an_earlier_task_does_not_see_new_units_and_a_new_one_sees_old_units_unchanged() -> None:
    grown = net()
    old = grown.widths
    before = grown(X, old)
    grown.grow_([2, 3, 5, 7])
    assert grown.widths == (8, 19, 125, 91)
    assert torch.equal(grown(X, old), before)
    torch.testing.assert_close(grown(X, grown.widths)[:, :84], before)


def test_units_can_be_taken_out_again() -> None:
    grown = net()
    before = grown(X, grown.widths)
    grown.grow_([2, 3, 5, 7])
    grown.keep_([torch.arange(6), torch.arange(16), torch.arange(120), torch.arange(84)])
    assert grown.widths == (6, 16, 120, 84)
    torch.testing.assert_close(grown(X, grown.widths), before)
    shuffled = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    grown.keep_([torch.arange(6), shuffled, torch.arange(120), torch.arange(84)])  # a unit's place does not matter
    torch.testing.assert_close(grown(X, grown.widths), before)


def test_holding_trains_new_entries_only() -> None:
    grown = net()
    old = grown.widths
    grown.grow_([1, 1, 1, 1])
    masks = grown.new_entries(old)
    before = [parameter.detach().clone() for parameter in grown.parameters()]
    restore = hold(list(grown.parameters()), masks)
    optimizer = torch.optim.SGD(grown.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        grown(X, grown.widths).square().sum().backward()
        optimizer.step()
        restore()
    for parameter, mask, was in zip(grown.parameters(), masks, before, strict=True):
        assert torch.equal(parameter[~mask], was[~mask])
        assert parameter.shape == mask.shape
    first = next(grown.parameters())
    assert not torch.equal(first[6], before[0][6])
    assert torch.equal(grown(X, old), net()(X, old))


def test_residual_networks_are_refused() -> None:
    generator = torch.Generator()
    with pytest.raises(ValueError, match="expected a plain chain of convolutions and dense layers, got"):
        Growing(resnet18_trunk(generator, filters=2), generator)
    assert isinstance(net().layers[0], nn.Conv2d)
