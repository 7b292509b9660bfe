import torch
from torch import nn

from batchensemble.lab.models import mlp


def test_mlp_is_the_written_formula():
    net = mlp(6, [5, 4], 3, generator=torch.Generator().manual_seed(0)).double()
    first, second, last = (m for m in net if isinstance(m, nn.Linear))
    x = torch.randn(7, 2, 3, dtype=torch.float64)
    hidden = torch.relu(x.flatten(1) @ first.weight.T + first.bias)
    hidden = torch.relu(hidden @ second.weight.T + second.bias)
    torch.testing.assert_close(net(x), hidden @ last.weight.T + last.bias)


def test_without_hidden_layers_it_is_linear():
    assert [type(m) for m in mlp(2, [], 1)] == [nn.Flatten, nn.Linear]
