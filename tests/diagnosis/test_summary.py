"""What an ensemble is made of: names, reasons, parameters."""

from collections import OrderedDict
from dataclasses import replace
from functools import partial

import pytest
import torch
from ensembles import M, convnet, ensemble, mlp
from torch import nn

import batchensemble as be
from batchensemble.diagnosis.summary import _grouped

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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, True),
        ({"norm": "member"}, False),
        ({"init": "ones"}, False),  # a pre-trained network keeps its statistics
        ({"fan_out": "5"}, False),  # members begin behind it
        ({"exclude": "1"}, True),
    ],
    ids=str,
)
def test_it_says_if_members_mix_their_statistics(options, said: bool) -> None:
    assert ("Batch norms shared by members: 1." in str(be.summary(be.convert(convnet(), members=M, **options)))) == said


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


@pytest.mark.parametrize("init", ["ones", "sign"])
def test_on_the_meta_device_parameters_are_counted_and_values_unknown(init: str) -> None:
    plain = be.summary(be.convert(convnet(), members=M, init=init, norm="member"))
    with torch.device("meta"):
        summary = be.summary(be.convert(convnet(), members=M, init=init, norm="member"))
    assert replace(plain, preserved=None) == summary
    assert str(summary).endswith("cannot be known on the meta device, which holds no values.")


def test_one_layer_with_values_can_tell_that_members_differ() -> None:
    for init, preserved in (("ones", None), ("sign", False)):
        model = be.convert(mlp(), members=M, init=init)
        model.net[2].to_empty(device="meta")
        assert be.summary(model).preserved is preserved


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "log-probabilities over axis -1"),
        ({"class_dim": 1}, "log-probabilities over axis 1"),
        ({"combine": "sigmoid"}, "log-odds"),
        ({"combine": "mean"}, "the mean of the members' outputs"),
        ({"combine": "vote"}, "logs of the shares of votes over axis -1"),
        ({"combine": torch.amax}, "what amax returns for all members' outputs"),
        ({"combine": partial(torch.amax, dim=0)}, "what your own rule returns for all members' outputs"),
        ({"combine": None}, "none: rows name their members"),
    ],
)
def test_it_says_what_an_answer_is_and_so_does_the_ensemble(options, words: str) -> None:
    model = be.convert(mlp(), members=M, **options)
    assert be.summary(model).answer == words
    assert f"An answer in eval(): {words}" in str(be.summary(model)).splitlines()
    assert f", answer in eval(): {words}\n" in repr(model)


def test_a_long_table_groups_its_layers() -> None:
    block = nn.TransformerEncoderLayer(4, 2, 4, batch_first=True)  # five layers
    net = nn.Sequential(OrderedDict(words=nn.Embedding(5, 4), body=nn.TransformerEncoder(block, 6)))
    summary = be.summary(be.convert(net, members=M, fan_out="body.layers.4", exclude="body.layers.5.linear1"))
    assert len(summary.converted) + len(summary.left) == 31
    assert [line for line in str(summary).splitlines() if line.startswith("  ")] == [
        "  body.layers.4-5        5 layers, converted",
        "  words                  plain: registered before the fan-out",
        "  body.layers.0-3        3 layers each, plain: registered before the fan-out",
        "  body.layers.0-5        2 layers each, plain: norm='shared'",
        "  body.layers.5.linear1  plain: excluded",
    ]


def test_names_are_joined_by_the_first_number_that_ends_a_part_of_them() -> None:
    def grouped(*names: str) -> list[tuple[str, str]]:
        return list(_grouped((name, "plain") for name in names))

    assert grouped(*(f"conv2d.{number}" for number in (0, 1, 2, 5, 7, 8))) == [
        ("conv2d.0-2, 5, 7-8", "6 layers, plain")
    ]
    assert grouped("stage1.0.a", "stage1.1.a", "stage3.0.a") == [("stage1, 3", "3 layers, plain")]
    assert grouped("head", "body.a", "body.b.4") == [("head", "plain"), ("body.a", "plain"), ("body.b.4", "plain")]


def test_it_follows_the_members() -> None:
    model = ensemble()
    before = be.summary(model)
    after = be.summary(model.add_members(2))
    assert after.members == M + 2
    assert after.network == before.network
    assert after.parameters > before.parameters
