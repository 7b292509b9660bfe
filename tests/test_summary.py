"""What an ensemble is made of: names, reasons, parameters."""

import pytest
import torch
from ensembles import M, convnet, ensemble, mlp
from torch import nn

import batchensemble as be

NETS = [mlp(), convnet(), nn.LSTM(3, 4, 2, bidirectional=True), nn.MultiheadAttention(4, 2, kdim=3, vdim=5)]


@pytest.mark.parametrize("net", NETS, ids=lambda net: type(net).__name__)
@pytest.mark.parametrize("options", [{}, {"rank": 2}, {"norm": "member"}], ids=str)
def test_parameters_are_counted(net: nn.Module, options) -> None:
    model = be.convert(net, members=M, combine="mean", **options)
    summary, plain = be.summary(model), sum(p.numel() for p in net.parameters())
    assert summary.network == plain
    assert summary.parameters == sum(p.numel() for p in model.parameters())
    assert summary.overhead == pytest.approx(summary.parameters / plain - 1)
    assert summary.naive_share == pytest.approx(summary.parameters / (M * plain))


def test_the_printed_table_names_every_layer() -> None:
    text = str(be.summary(be.convert(convnet(), members=M, exclude="5")))
    assert repr(be.summary(be.convert(convnet(), members=M, exclude="5"))) == text, "a notebook shows it without print"
    assert text.startswith("BatchEnsemble of 3 members\n  0  converted")
    assert "1  plain: norm='shared'" in text
    assert "5  plain: excluded" in text
    assert text.endswith("init='ones' would start them equal to it.")
    assert "(root)" in str(be.summary(be.convert(nn.Linear(2, 2), members=2)))


@pytest.mark.parametrize("rank", [1, 2])
def test_the_function_is_preserved_until_something_changes(rank: int) -> None:
    for name in ("0.r", "5.s", "0.bias", "1.running_mean"):
        model = be.convert(convnet(), members=M, init="ones", rank=rank, norm="member")
        assert be.summary(model).preserved
        assert "Every member still equals the network" in str(be.summary(model))
        tensor = dict([*model.net.named_parameters(), *model.net.named_buffers()])[name]
        with torch.no_grad():
            tensor[1].view(-1)[0] += 1
        assert not be.summary(model).preserved, name


def test_a_further_component_with_an_effect_preserves_nothing() -> None:
    model = be.convert(mlp(), members=M, init="ones", rank=2)
    with torch.no_grad():
        model.net[0].s[1, 1, 0] = 0.5
    assert not be.summary(model).preserved


def test_it_follows_the_members() -> None:
    model = ensemble()
    before = be.summary(model)
    after = be.summary(model.add_members(2))
    assert after.members == M + 2
    assert after.network == before.network
    assert after.parameters > before.parameters
