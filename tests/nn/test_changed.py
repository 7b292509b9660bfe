"""Networks that were changed after `convert`: what still works, and what then is said."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from ensembles import IDS, M, convnet, ensemble, images, mlp, randomise, rows
from torch import nn

import batchensemble as be
from batchensemble.nn.layers.member import converted_layers

close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-5)


class Head(be.nn.Linear):
    """A user's subclass of a layer with members."""


HEADS: dict[str, Any] = {
    "plain": partial(nn.Linear, 6, 5),
    "with members": partial(be.nn.Linear, 6, 5, members=M),
    "of a class of its own": partial(Head, 6, 5, members=M),
}


def with_new_head(kind: str) -> be.Ensemble:
    model = ensemble()
    model.net[2] = HEADS[kind]()
    return randomise(model)


@pytest.mark.parametrize("kind", HEADS)
def test_a_new_head_is_asked_for_the_right_members(kind: str) -> None:
    model, x = with_new_head(kind), rows()
    plain = torch.stack([model.extract(i)(x) for i in range(M)])
    close(model.members(x), plain)
    close(torch.stack([model(x, member=i) for i in range(M)]), plain)
    close(model(x, member=IDS), plain[IDS, torch.arange(len(x))])
    be.verify(model, x)


@pytest.mark.parametrize("kind", HEADS)
def test_a_new_head_is_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    model, net = with_new_head(kind), mlp(outputs=5)
    model.save(tmp_path / "ensemble")
    loaded = be.load(tmp_path / "ensemble", net).eval()
    assert torch.equal(loaded.members(rows()), model.members(rows()))


def test_a_new_head_is_listed_as_what_it_is() -> None:
    summary = be.summary(with_new_head("plain"))
    assert summary.converted == ("0",)
    assert summary.left == {"2": "replaced after convert"}
    assert be.summary(with_new_head("with members")).converted == ("0", "2")
    model = ensemble()
    del model.net[2]
    assert be.summary(model).left == {}


def test_a_new_head_needs_as_many_members() -> None:
    model = ensemble()
    model.net[2] = be.nn.Linear(6, 5, members=2)
    with pytest.raises(RuntimeError, match=f"2 members inside an ensemble of {M}"):
        model(rows(4))


@pytest.mark.parametrize("kind", [nn.GRU, partial(nn.MultiheadAttention, num_heads=2)], ids=["gru", "attention"])
def test_layers_of_several_parts_are_named_whole(kind: Any) -> None:
    class Around(nn.ModuleDict):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    net = Around({"first": kind(4, hidden_size=4) if kind is nn.GRU else kind(4), "norm": nn.LayerNorm(4)})
    assert converted_layers(be.convert(net, members=M, norm="member").net) == ("first", "norm")
    assert converted_layers(be.convert(net, members=M).net) == ("first",)


def test_synchronised_norms_have_no_members() -> None:
    """torch puts its `SyncBatchNorm` in the place of every batch norm, also of one that has members."""
    shared, own = ensemble(convnet()), ensemble(convnet(), norm="member")
    before = shared(images())
    shared, own = map(nn.SyncBatchNorm.convert_sync_batchnorm, (shared, own))
    close(shared(images()), before)
    with pytest.raises(RuntimeError, match="layer '1' had a norm for every member, and SyncBatchNorm"):
        own(images())


def test_errors_of_the_network_stay_its_own() -> None:
    class Fails(nn.Linear):
        def extra(self) -> None:
            raise RuntimeError("of my own")

    model = ensemble(nn.Sequential(Fails(4, 3)))
    model.net.register_forward_hook(lambda net, *_: net[0].extra())
    with pytest.raises(RuntimeError, match=r"^of my own$"):
        model(rows())
