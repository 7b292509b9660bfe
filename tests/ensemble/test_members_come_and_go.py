"""Members that are added, kept and taken out: those that stay answer as before."""

import copy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from ensembles import M, N, convnet, ensemble, images, mlp, randomise, rows
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune
from torch.nn.utils.parametrizations import spectral_norm

import batchensemble as be

close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-5)


class Everything(nn.Module):
    """A layer of every family."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.conv, self.norm = nn.Conv1d(4, 4, 3, padding=1), nn.BatchNorm1d(4)
        self.attention, self.after = nn.MultiheadAttention(4, 2, batch_first=True), nn.LayerNorm(4)
        self.lstm, self.head = nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.norm(self.conv(self.embed(tokens).transpose(1, 2))).transpose(1, 2)
        x = self.after(x + self.attention(x, x, x)[0])
        return self.head(self.lstm(x)[0][:, -1])


TOKENS = torch.arange(N * 5).reshape(N, 5) % 9


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("norm", ["shared", "member"])
def test_growing_and_shrinking_leaves_the_others_bit_for_bit(norm: str, rank: int) -> None:
    model = ensemble(Everything(), norm=norm, rank=rank, include="*")
    before = [model(TOKENS, member=i) for i in range(M)]
    model.add_members(5, generator=torch.Generator().manual_seed(0))
    assert len(model) == M + 5
    assert all(torch.equal(model(TOKENS, member=i), before[i]) for i in range(M))
    be.verify(model, TOKENS)
    model.add_members(1, like=1)
    assert torch.equal(model(TOKENS, member=M + 5), before[1])
    model.keep_members([M + 5, 2, 0])
    assert [torch.equal(model(TOKENS, member=i), before[j]) for i, j in enumerate([1, 2, 0])] == [True] * 3
    assert model.train()(TOKENS).shape == (N, 3)


LOW_PRECISION = {
    "rows": (nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)), rows(64)),
    "images": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), images(64)),
    "images, layer norms": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.LayerNorm(2)), images(64)),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", LOW_PRECISION)
def test_in_low_precision_too_the_others_answer_mixed_rows_bit_for_bit(kind: str, dtype: torch.dtype) -> None:
    net, x = LOW_PRECISION[kind]
    model, x, ids = ensemble(net, members=2, norm="member"), x.to(dtype), torch.arange(64) % 2
    for buffer in model.buffers():  # statistics that low precision has to round
        if buffer.is_floating_point():
            buffer.copy_(torch.rand(buffer.shape, generator=torch.Generator().manual_seed(2)) + 0.5)
    before = model.to(dtype)(x, member=ids)
    for more in (1, 5, 40):  # torch's loops round what is left of a table differently from the rest of it
        model.add_members(more, generator=torch.Generator().manual_seed(0))
        assert torch.equal(model(x, member=ids), before)


def test_new_members_start_by_the_rule_and_at_the_mean() -> None:
    model = ensemble(convnet(), norm="member", rank=2)
    model.train()(images(9))
    model(images(9), member=0)
    before = copy.deepcopy(model.state_dict())
    model.add_members(2, generator=torch.Generator().manual_seed(0))
    after = model.state_dict()
    assert bool((after["net.0.r"][M:].abs() == 1).all())
    assert not after["net.0.s"][M:, 1].any()
    for name in ("net.0.bias", "net.1.weight", "net.1.running_mean", "net.1.running_var"):
        close(after[name][M:], before[name].mean(0).expand(2, -1))
    assert after["net.1.num_batches_tracked"].tolist() == [2, 1, 1, 2, 2]  # a counter has no mean: the longest


def test_new_members_of_a_complex_network_start_at_the_mean() -> None:
    model = ensemble(nn.Linear(4, 3, dtype=torch.complex64), combine="mean")
    mean = model.net.bias.detach().mean(0)
    close(model.extract_mean().bias, mean)
    close(model.add_members(1).net.bias[M], mean)


def test_what_is_not_there_is_an_error() -> None:
    model = ensemble()
    for call in (model.extract, lambda i: model.add_members(1, like=i), lambda i: model.keep_members([0, i])):
        for bad in (M, -1):
            with pytest.raises(IndexError, match=rf"\[0, {M}\), got {bad}"):
                call(bad)
    for count in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match=f"count must be a positive integer, got {count!r}"):
            model.add_members(count)
    with pytest.raises(ValueError, match="at least one member"):
        model.keep_members([])
    assert len(model) == M


@pytest.mark.parametrize(
    "kept", [torch.tensor([2, 0]), torch.tensor([2, 0]).numpy(), (2, 0)], ids=["torch", "numpy", "tuple"]
)
def test_members_are_named_by_integers_of_any_kind(kept: Any) -> None:
    model = ensemble()
    before = [model(rows(), member=i) for i in range(M)]
    close(model.extract(kept[0])(rows()), before[2])
    model.add_members(1, like=kept[0]).keep_members([*kept, M])
    assert all(torch.equal(model(rows(), member=i), before[j]) for i, j in enumerate([2, 0, 2]))
    assert torch.equal(model.keep_members(kept)(rows(), member=0), before[2])


def test_counts_are_integers_of_any_kind(tmp_path: Path) -> None:
    one, two = torch.tensor([1, 2]).numpy()
    model = be.convert(mlp(), members=two, rank=two).add_members(one).add_members(torch.tensor(1))
    assert len(model) == 4
    model.save(tmp_path / "ensemble")
    assert len(be.load(tmp_path / "ensemble", mlp())) == 4


@pytest.mark.parametrize("mask", [[True, False, True], torch.tensor([True, False, True])], ids=["list", "torch"])
def test_a_mask_of_members_is_refused(mask: Any) -> None:
    model = ensemble()
    for call in (model.keep_members, lambda mask: model.extract(mask[0]), lambda mask: model.add_members(1, mask[0])):
        with pytest.raises(TypeError, match="member must be an integer"):
            call(mask)
    assert model(rows()).shape == (N, 3)


CHANGES = {
    "pruned weight": (
        lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
        lambda layer: prune.remove(layer, "weight"),
    ),
    "spectral norm": (spectral_norm, lambda layer: parametrize.remove_parametrizations(layer, "weight")),
    "positive r": (
        lambda layer: parametrize.register_parametrization(layer, "r", nn.Softplus()),
        lambda layer: parametrize.remove_parametrizations(layer, "r"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_layers_changed_after_convert_are_named_and_nothing_is_torn(tmp_path, name: str) -> None:
    change, undo = CHANGES[name]
    model = ensemble().double()
    change(model.net[2])
    x = rows().double()
    before = model.members(x)
    for call in (
        lambda: model.extract(0),
        model.extract_mean,
        lambda: model.add_members(1),
        lambda: model.keep_members([1]),
        lambda: be.verify(model, x),
        lambda: model.save(tmp_path / "never"),  # a file that no plain network would fit
        lambda: model.save_member(0, tmp_path / "never"),
    ):
        with pytest.raises(RuntimeError, match=r"layer '2' \(\w*Linear\) was pruned or parametrised after convert"):
            call()
    assert len(model) == M
    assert torch.equal(model.members(x), before)
    undo(model.net[2])
    model.add_members(1, like=1)
    assert torch.equal(model(x, member=M), model(x, member=1))
    be.verify(model, x)


@pytest.mark.parametrize("rank", [1, 3])
def test_extract_mean_folds_the_mean_weight(rank: int) -> None:
    model = ensemble(Everything(), rank=rank, norm="member")
    mean = model.extract_mean().state_dict()
    each = [model.extract(i).state_dict() for i in range(M)]
    assert list(mean) == list(Everything().state_dict())
    for name, tensor in mean.items():
        if tensor.is_floating_point():
            close(tensor, torch.stack([state[name] for state in each]).mean(0))


def test_extracts_are_networks_of_their_own() -> None:
    model = ensemble()
    plain, before = model.extract(0), model(rows())
    randomise(plain, seed=9)
    assert torch.equal(model(rows()), before)


def test_a_refused_generator_leaves_all_members_as_they_were() -> None:
    """The norm comes first and draws nothing: it must not have grown when the linear layer is refused."""
    model = be.convert(nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 3)), members=M, norm="member")
    before = model.state_dict()
    with pytest.raises(TypeError, match=r"expected a torch\.Generator, .*, got int$"):
        model.add_members(1, generator=3)  # type: ignore[arg-type]
    assert {name: tensor.shape for name, tensor in model.state_dict().items()} == {
        n: t.shape for n, t in before.items()
    }
    assert model.members(torch.randn(N, 4)).shape == (M, N, 3)
