"""Late fan-out: the same answers for less work, and an error where a network cannot be cut."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from layer_cases import randomise
from torch import Tensor, nn

import batchensemble as be

M, N, D = 3, 4, 6
close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)


class Block(nn.Module):
    """A residual block that is told where it is and what to hide."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x: Tensor, places: Tensor, mask: Tensor | None = None) -> Tensor:
        y = self.outer(torch.relu(self.inner(x + places)))
        return x + (y if mask is None else y * mask[..., None])


class Net(nn.Module):
    """Blocks in a row; a shared table of places (T, D), a mask (N, T) with rows."""

    def __init__(self, places: int = 5) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.places = nn.Parameter(torch.randn(places, D))
        self.head = nn.Linear(D, 3)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for block in self.blocks:
            x = block(x, self.places[: x.shape[1]], mask=mask)
        return self.head(x.mean(1))


def late(net: nn.Module, fan_out: str, **options: Any) -> nn.Module:
    return randomise(be.convert(net.double(), members=M, fan_out=fan_out, **options)).eval()


def batch(rows: int = N, length: int = 5) -> Tensor:
    return torch.randn(rows, length, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def hidden(rows: int = N, length: int = 5) -> Tensor:
    return (torch.arange(length) <= torch.arange(rows)[:, None]).double()


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("cut", ["blocks.0", "blocks.1", "blocks.2", "head"])
def test_equal_to_the_plain_networks(cut: str, masked: bool, rows: int) -> None:
    """Also for a lone row, and where a table of places has a multiple of the rows."""
    model, x = late(Net(places=12), cut), batch(rows, 12)
    mask = hidden(rows, 12) if masked else None
    be.verify(model, x, mask=mask)
    members, ids = model.members(x, mask=mask), torch.arange(rows) * 2 % M
    close(model(x, mask=mask, member=ids), members[ids, torch.arange(rows)])
    close(model(x, mask=mask, member=2), members[2])
    assert members.shape == (M, rows, 3)


class Again(Net):
    """One block that is called several times, with the same mask every time, as ALBERT's is."""

    def __init__(self) -> None:
        super().__init__()
        del self.blocks[1:]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for _ in range(3):
            x = self.blocks[0](x, self.places[: x.shape[1]], mask=mask)
        return self.head(x.mean(1))


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("masked", [True, False])
def test_a_module_that_is_called_again_and_again(masked: bool, rows: int) -> None:
    model, x = late(Again(), "blocks.0"), batch(rows)
    mask = hidden(rows) if masked else None
    be.verify(model, x, mask=mask)
    close(model(x, mask=mask, member=2), model.members(x, mask=mask)[2])


def test_equal_to_fanning_out_at_the_input() -> None:
    model, x = late(Net(), "blocks.1"), batch()
    early = be.convert(model.extract(0), members=M, include=list(model.conversion.converted)).eval()
    early.load_state_dict(model.state_dict())
    close(model.members(x), early.members(x))
    close(model(x), early(x))


@pytest.mark.parametrize("rows", [N, 6, 7])
def test_dealt_rows_in_training(rows: int) -> None:
    model, x = late(Net(), "blocks.1").train(), batch(rows)
    owners = torch.arange(rows) * M // rows
    close(model(x), model.members(x)[owners, torch.arange(rows)])


def test_gradients_reach_the_trunk_once_for_all_members() -> None:
    model, x = late(Net(), "blocks.1"), batch()
    model.members(x).square().mean().backward()
    trunk = model.net.blocks[0].inner.weight.grad.clone()
    total = torch.zeros_like(trunk)
    for i in range(M):
        plain = model.extract(i)
        (plain(x).square().mean() / M).backward()
        total += plain.blocks[0].inner.weight.grad
    close(trunk, total)


class Skips(nn.Module):
    """A residual around the fan-out."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.body, self.head = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        return self.head(x + self.body(x))


@pytest.mark.parametrize("rows", [1, 2, M, N])
def test_a_torn_residual_is_an_error(rows: int) -> None:
    """A single row would broadcast."""
    model, x = late(Skips(), "body"), torch.randn(rows, D, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="cannot be cut at fan_out='body'"):
        model(x)
    assert model(x, member=1).shape == (rows, 3)  # one copy is never torn


def test_other_errors_stay_what_they_are() -> None:
    model = late(Skips(), "head")
    with pytest.raises(RuntimeError, match="cannot be multiplied") as found:
        model(torch.randn(N, D + 1, dtype=torch.float64))  # before the cut
    assert not hasattr(found.value, "__notes__")

    class Refuses(Skips):
        def forward(self, x: Tensor) -> Tensor:
            super().forward(x)
            raise ValueError("not these")

    with pytest.raises(ValueError, match="not these"):
        late(Refuses(), "head")(torch.randn(N, D, dtype=torch.float64))


def test_a_fan_out_that_is_never_called() -> None:
    net = Skips()
    net.unused = nn.Linear(D, D)
    model = late(net, "unused")
    for call in (model, partial(model, member=1), model.members, model.train()):
        with pytest.raises(RuntimeError, match="never called fan_out='unused'"):
            call(torch.randn(N, D, dtype=torch.float64))


@pytest.mark.parametrize("member", [None, 1, torch.zeros(N, dtype=torch.long)])
def test_a_converted_layer_before_it_is_named(member) -> None:
    model = late(Net(), "blocks.1", include=["blocks.0.outer", "head"])
    for mode in (True, False):
        with pytest.raises(RuntimeError, match=r"layer 'blocks\.0\.outer'"):
            model.train(mode)(batch(), member=member)


class Loses(nn.Module):
    """Answers for the rows that it was given, whatever became of them inside."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(D, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)[: len(x)]


def test_an_answer_without_all_rows_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not hold the 12 rows of 3 members"):
        late(Loses(), "body")(torch.randn(N, D, dtype=torch.float64))


class Windows(nn.Module):
    """Two inner rows for every row at the fan-out."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.body, self.head = nn.Linear(D, D), Block(), nn.Linear(D, 3)
        self.places = nn.Parameter(torch.randn(D))

    def forward(self, x: Tensor) -> Tensor:
        windows = self.stem(x).unflatten(1, (2, -1)).flatten(0, 1)
        return self.head(self.body(windows, self.places).unflatten(0, (-1, 2)).mean((1, 2)))


@pytest.mark.parametrize("rows", [1, N])
def test_several_rows_inside_for_each_outside(rows: int) -> None:
    be.verify(late(Windows(), "body"), batch(rows, 6))


class PlacesFirst(Windows):
    """A table that is longer than the batch, and no multiple of it, comes before the rows."""

    def forward(self, x: Tensor) -> Tensor:
        windows = self.stem(x).unflatten(1, (2, -1)).flatten(0, 1)
        return self.head(self.body(places=self.places, x=windows).unflatten(0, (-1, 2)).mean((1, 2)))


def test_only_a_multiple_of_the_batch_may_be_its_rows() -> None:
    be.verify(late(PlacesFirst(), "body"), batch(N, 6))


def test_a_full_gpu_is_no_fault_of_the_cut() -> None:
    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("out of memory")

    model = late(Net(), "blocks.1")
    model.net.head.register_forward_pre_hook(full)
    with pytest.raises(torch.OutOfMemoryError, match=r"^out of memory"):
        model(batch())


class ShowsItsTrunk(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(D, D), nn.Linear(D, 3)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        features = self.stem(x)
        return {"features": features, "logits": self.head(features)}


@pytest.mark.parametrize("rows", [1, 2, N])
def test_what_the_trunk_answers_is_every_members(rows: int) -> None:
    model, x = late(ShowsItsTrunk(), "head"), torch.randn(rows, D, dtype=torch.float64)
    assert model(x)["features"].shape == (M, rows, D)
    assert model(x)["logits"].shape == (rows, 3)
    be.verify(model, x)


class Packs(nn.Module):
    """Rows of different lengths, packed before the fan-out."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.lstm, self.head = nn.Linear(D, D), nn.LSTM(D, D, batch_first=True), nn.Linear(D, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.stem(x), lengths, batch_first=True, enforce_sorted=False)
        return self.head(nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0].sum(1))


@pytest.mark.parametrize("rows", [1, N])
def test_packed_rows_are_repeated_too(rows: int) -> None:
    be.verify(late(Packs(), "lstm"), batch(rows), torch.tensor([3, 5, 1, 3])[:rows])


@dataclass
class Features:
    """What a trunk hands over, beside the rows a cache of its own."""

    rows: Tensor
    seen: list[Tensor]


class Cache:
    """An object that torch can take apart, as it can Transformers' caches once one of them was exported."""

    def __init__(self, *rows: Tensor) -> None:
        self.rows = list(rows)


torch.utils._pytree.register_pytree_node(Cache, lambda cache: (cache.rows, None), lambda rows, _: Cache(*rows))


class Reads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(D, 3)

    def forward(self, features: Features, cache: Cache) -> Tensor:
        cache.rows.append(features.seen[0])
        return self.linear(features.rows + features.seen[0])


class HandsOver(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(D, D), Reads()

    def forward(self, x: Tensor, cache: Cache) -> Tensor:
        return self.head(Features(self.stem(x), [x]), cache)


def test_rows_in_structures_are_repeated_and_objects_go_through() -> None:
    model, x = late(HandsOver(), "head"), torch.randn(N, D, dtype=torch.float64)
    cache = Cache(x)
    be.verify(model, x, cache)
    cache = Cache(x)
    compiled = torch.compile(model.members, backend="eager", fullgraph=True)
    close(compiled(x, cache), model.members(x, cache))
    assert [len(rows) for rows in cache.rows] == [N, M * N, M * N]


class Writes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(D, D)

    def forward(self, features: Features) -> None:
        features.rows = torch.tanh(self.linear(features.rows))


class WrittenInto(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cut, self.step, self.head = nn.Linear(D, D), Writes(), nn.Linear(D, 3)

    def forward(self, x: Tensor) -> Tensor:
        features = Features(self.cut(x), [])
        self.step(features)
        return self.head(features.rows)


def test_a_later_module_writes_into_the_networks_own_object() -> None:
    model, x = late(WrittenInto(), "cut"), torch.randn(N, D, dtype=torch.float64)
    be.verify(model, x)
    close(torch.compile(model.members, backend="eager", fullgraph=True)(x), model.members(x))


def test_an_empty_batch() -> None:
    assert late(Net(), "blocks.1").members(batch(0)).shape == (M, 0, 3)


def test_the_root_is_a_fan_out_at_the_input() -> None:
    be.verify(late(Skips(), ""), torch.randn(N, D, dtype=torch.float64))


def test_an_extract_has_no_hooks() -> None:
    model = late(Net(), "blocks.1")
    assert sum(len(module._forward_pre_hooks) for module in model.modules()) > 0
    assert sum(len(module._forward_pre_hooks) for module in model.extract(0).modules()) == 0


def test_time_first() -> None:
    layer = nn.TransformerEncoderLayer(D, 2, 8, dropout=0.0)
    net = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    model = late(net, "layers.1", combine="mean", batch_dim=1)
    x = torch.randn(5, N, D, dtype=torch.float64)
    be.verify(model, x)
    be.verify(model, x[:, :1])


class Weighs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(D, 3)

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return self.linear(x) * weight[..., None]  # type: ignore[no-any-return]


class WeighsSteps(nn.Module):
    """Time-first, with a number for every step that meets the cut."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(D, D), Weighs()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.stem(x), x[..., 0])  # type: ignore[no-any-return]


@pytest.mark.parametrize("steps", [2, N, M * N])
def test_a_number_for_every_step_is_repeated_along_its_rows(steps: int) -> None:
    model = late(WeighsSteps(), "head", batch_dim=1)
    x = torch.randn(steps, N, D, dtype=torch.float64)
    be.verify(model, x)
    be.verify(model, x[:, :1])
    sizes = ({0: torch.export.Dim("steps", min=2), 1: torch.export.Dim("rows", min=2)},)
    exported = torch.export.export(model.eval(), (x,), dynamic_shapes=sizes).module()
    for other in (x, torch.randn(5, 5, D, dtype=torch.float64)):
        close(exported(other), model(other))
