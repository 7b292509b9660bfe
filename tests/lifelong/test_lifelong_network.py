"""A twin shares the common tensors themselves, and has rows of its own."""

import pytest
import torch
from torch import nn

import batchensemble as be
from batchensemble.lifelong.network import train_own_, twin_for_new_tasks


def ensemble(net: nn.Module, members: int = 3) -> be.Ensemble:
    model = be.convert(net, members, combine=None, generator=torch.Generator().manual_seed(0))
    be.freeze_shared_(model)
    return model


def test_a_twin_shares_what_is_common_and_owns_its_rows() -> None:
    model = ensemble(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 2)))
    new = twin_for_new_tasks(model, [2, 0])
    assert len(new) == 2
    assert len(model) == 3
    assert new.net[0].weight is model.net[0].weight
    assert new.net[1].running_mean is model.net[1].running_mean
    assert torch.equal(new.net[0].r, model.net[0].r[[2, 0]])
    assert new.net[0].r.requires_grad
    assert new.net[0].bias.requires_grad
    assert not new.net[0].weight.requires_grad
    with torch.no_grad():
        new.net[0].r.zero_()
    assert model.net[0].r.ne(0).all()


def test_fresh_rows_are_drawn_and_biases_are_kept() -> None:
    model = ensemble(nn.Sequential(nn.Linear(40, 50)))
    with torch.no_grad():
        model.net[0].bias[1].fill_(7)
    new = twin_for_new_tasks(model, [1], torch.Generator().manual_seed(1))
    assert new.net[0].r.abs().eq(1).all()
    assert not torch.equal(new.net[0].r, model.net[0].r[[1]])
    assert new.net[0].bias.eq(7).all()


@pytest.mark.parametrize(
    "net",
    [
        nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 6)),
        nn.Sequential(nn.Embedding(9, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)),
        nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.Linear(4, 3)),
    ],
    ids=["layer norm", "attention", "spectral norm"],
)
def test_training_a_twin_moves_nothing_that_is_common(net: nn.Module) -> None:
    model = ensemble(net, members=2)
    common = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    new = twin_for_new_tasks(model, [0], torch.Generator().manual_seed(0))
    train_own_(new)
    x = torch.randint(9, (5, 3)) if isinstance(net[0], nn.Embedding) else torch.randn(5, 4)
    optimizer = torch.optim.SGD([p for p in new.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        new(x, member=0).square().sum().backward()
        optimizer.step()
    assert all(torch.equal(tensor, common[name]) for name, tensor in model.state_dict().items())


class Whitened(nn.Module):
    """A network that keeps a constant of the data beside its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(4))
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(), nn.Linear(6, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x - self.centre)


def test_a_buffer_of_the_network_does_not_stop_its_layers_from_training() -> None:
    new = twin_for_new_tasks(ensemble(Whitened(), members=2), [0])
    train_own_(new)
    modes = [layer.training for layer in new.net.layers]
    assert modes == [True, False, True, True]  # the shared norm keeps its statistics
