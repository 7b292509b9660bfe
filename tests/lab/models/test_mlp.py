import pytest
import torch
from torch import nn

from batchensemble.lab.models import dense_classifier, mlp


def test_mlp_is_the_written_formula():
    net = mlp(6, [5, 4], 3, generator=torch.Generator().manual_seed(0)).double()
    first, second, last = (m for m in net if isinstance(m, nn.Linear))
    x = torch.randn(7, 2, 3, dtype=torch.float64)
    hidden = torch.relu(x.flatten(1) @ first.weight.T + first.bias)
    hidden = torch.relu(hidden @ second.weight.T + second.bias)
    torch.testing.assert_close(net(x), hidden @ last.weight.T + last.bias)


def test_without_hidden_layers_it_is_linear():
    assert [type(m) for m in mlp(2, [], 1)] == [nn.Flatten, nn.Linear]


def test_a_dense_classifier_is_the_written_formula():
    net = dense_classifier(6, [5, 4], 3, generator=torch.Generator().manual_seed(0)).double()
    first, second = (m for m in net.backbone if isinstance(m, nn.Linear))
    x = torch.randn(7, 6, dtype=torch.float64)
    hidden = torch.relu(torch.relu(x @ first.weight.T + first.bias) @ second.weight.T + second.bias)
    last = net.head.classifier
    torch.testing.assert_close(net(x), hidden @ last.weight.T + last.bias)


def test_a_dense_classifier_drops_after_hidden_layers_and_before_the_classifier():
    net = dense_classifier(2, [3, 3], 4, head_width=5, dropout=0.2, block_dropout=0.1)
    assert [type(m) for m in net.backbone] == [nn.Linear, nn.ReLU, nn.Dropout] * 2
    assert [type(m) for m in net.head] == [nn.Linear, nn.ReLU, nn.Dropout, nn.Linear]
    assert (net.backbone[2].p, net.head.drop.p) == (0.1, 0.2)


def test_a_dense_classifier_starts_like_torchs_layers():
    net = dense_classifier(400, [300], 200, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    for ours in (net.backbone[0], net.head.classifier):
        theirs = nn.Linear(ours.in_features, ours.out_features)
        for name in ("weight", "bias"):
            own, reference = getattr(ours, name), getattr(theirs, name)
            assert own.abs().max() <= ours.in_features**-0.5
            assert own.std().item() == pytest.approx(reference.std().item(), rel=0.1)
