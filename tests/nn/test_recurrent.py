"""LSTM and GRU for members against torch's own: layers, directions, projections, packed rows, given states."""

import subprocess
import sys
from functools import partial
from typing import Any

import pytest
import torch
from layer_cases import M, randomise
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import batchensemble as be
from batchensemble.nn.routing.route import Route, travel

N, T, WIDTH, H = 4, 5, 3, 4
close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
LENGTHS = torch.tensor([3, 5, 1, 3])
IDS = torch.tensor([2, 0, 2, 1])
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm": ("LSTM", {}),
    "lstm, all": ("LSTM", {"num_layers": 2, "bidirectional": True, "proj_size": 2, "batch_first": True}),
    "lstm, no bias": ("LSTM", {"bias": False, "batch_first": True}),
    "gru": ("GRU", {"batch_first": True}),
    "gru, all": ("GRU", {"num_layers": 2, "bidirectional": True}),
}
every_kind = pytest.mark.parametrize(("kind", "options"), KINDS.values(), ids=KINDS)


def layer(kind: str, options: dict[str, Any], **more: Any) -> nn.Module:
    return randomise(getattr(be.nn, kind)(WIDTH, H, members=M, **options, **more).double())


def batch(options: dict[str, Any], rows: int = N) -> Tensor:
    x = torch.randn(rows, T, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x if options.get("batch_first") else x.transpose(0, 1)


def states(kind: str, options: dict[str, Any], rows: int = N) -> Any:
    generator = torch.Generator().manual_seed(1)
    cells = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)

    def state(size: int) -> Tensor:
        return torch.randn(cells, rows, size, generator=generator, dtype=torch.float64)

    return (state(options.get("proj_size") or H), state(H)) if kind == "LSTM" else state(H)


def leaves(out: Any) -> list[Tensor]:
    if isinstance(out, PackedSequence):
        return [out.data]
    return [out] if isinstance(out, Tensor) else [leaf for part in out for leaf in leaves(part)]


def mixed(module: nn.Module, x: Tensor, hx: Any, options: dict[str, Any]) -> tuple[Tensor, list[Tensor]]:
    """Row n by member IDS[n], one plain call each."""
    axis, outputs, hidden = 0 if options.get("batch_first") else 1, [], []
    for n, i in enumerate(IDS.tolist()):
        mine = None if hx is None else _map(hx, lambda state, n=n: state[:, n : n + 1].contiguous())
        y, after = module.plain(i)(x.narrow(axis, n, 1), mine)
        outputs.append(y)
        hidden.append(leaves(after))
    return torch.cat(outputs, axis), [torch.cat(parts, 1) for parts in zip(*hidden, strict=True)]


def _map(hx: Any, function: Any) -> Any:
    return tuple(function(state) for state in hx) if isinstance(hx, tuple) else function(hx)


@every_kind
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("rank", [1, 2])
def test_rows_that_choose_their_members(kind: str, options: dict[str, Any], given: bool, rank: int) -> None:
    module, x = layer(kind, options, rank=rank), batch(options)
    hx = states(kind, options) if given else None
    y, hidden = mixed(module, x, hx, options)
    module.routed = True
    ours, after = travel(Route(M, N, IDS), module, x, hx)
    close(ours, y)
    for a, b in zip(leaves(after), hidden, strict=True):
        close(a, b)


@every_kind
@pytest.mark.parametrize("given", [False, True])
def test_blocks(kind: str, options: dict[str, Any], given: bool) -> None:
    module, x = layer(kind, options), batch(options)
    hx = states(kind, options) if given else None
    axis = 0 if options.get("batch_first") else 1
    y, after = module(torch.cat([x] * M, axis), hx if hx is None else _map(hx, lambda s: torch.cat([s] * M, 1)))
    for i in range(M):
        expected, state = module.plain(i)(x, hx)
        close(y.chunk(M, axis)[i], expected)
        for ours, theirs in zip(leaves(after), leaves(state), strict=True):
            close(ours.chunk(M, 1)[i], theirs)


class Stateful(nn.Module):
    """A network that takes its recurrent layer's state and gives it back."""

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        super().__init__()
        self.recurrent = getattr(nn, kind)(WIDTH, H, **options)

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        return self.recurrent(x, state)


def stateful(kind: str, options: dict[str, Any], **more: Any) -> Any:
    axis = 0 if options.get("batch_first") else 1
    net = Stateful(kind, options).double()
    return randomise(be.convert(net, members=M, combine="mean", batch_dim=axis, **more)).eval()


@every_kind
@pytest.mark.parametrize("shared", [False, True])
def test_a_state_given_to_an_ensemble_is_every_members(kind: str, options: dict[str, Any], shared: bool) -> None:
    model = stateful(kind, options, shared_inputs=["state"] * shared)
    x, state = batch(options, rows=7), states(kind, options, rows=7)
    be.verify(model, x, state)
    for ours, *theirs in zip(
        leaves(model.members(x, state)), *(leaves(model.extract(i)(x, state)) for i in range(M)), strict=True
    ):
        close(ours, torch.stack(theirs))


@every_kind
def test_a_state_that_came_back_is_each_members_own(kind: str, options: dict[str, Any]) -> None:
    model, x = stateful(kind, options), batch(options, 7)
    y, state = model.members(x, model.members(x)[1])
    for i in range(M):
        plain = model.extract(i)
        expected, after = plain(x, plain(x)[1])
        close(y[i], expected)
        for ours, theirs in zip(leaves(state), leaves(after), strict=True):
            close(ours[i], theirs)


def test_a_state_of_as_many_layers_as_rows_is_named() -> None:
    options = {"batch_first": True}
    x, state = batch(options, 1), states("GRU", options, rows=1)
    with pytest.raises(ValueError, match=r"layer 'recurrent' \(GRU\) got a state of shape \(3, 1, 4\) for 3 rows"):
        stateful("GRU", options).members(x, state)
    be.verify(stateful("GRU", options, shared_inputs="state"), x, state)


@pytest.mark.parametrize("shape", [(1, 2, H), (2, N, H), (1, N + 1), (M, 1, N, H)])
def test_a_state_that_fits_no_rows_is_refused(shape: tuple[int, ...]) -> None:
    model = stateful("GRU", {"batch_first": True})
    with pytest.raises(ValueError, match=r"expected \(1, 4, size\)\. Where"):
        model(batch({"batch_first": True}), torch.zeros(shape, dtype=torch.float64), member=IDS)


@pytest.mark.parametrize("member", [None, 1])
def test_rows_that_are_there_once_need_a_state_each(member: int | None) -> None:
    model, state = stateful("GRU", {"batch_first": True}).train(), torch.zeros(1, 2, H, dtype=torch.float64)
    x = batch({"batch_first": True}, rows=2 * M)
    with pytest.raises(ValueError, match=r"expected \(1, 6, size\)\. Where"):
        model(x, state, member=member)
    with pytest.raises(ValueError, match=r"expected \(1, 18, size\), or for all members alike \(1, 6, size\)\. Where"):
        model.members(x, state)


@every_kind
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_packed_rows(kind: str, options: dict[str, Any], in_order: bool, given: bool) -> None:
    module, x = layer(kind, options), batch(options)
    lengths = LENGTHS.sort(descending=True).values if in_order else LENGTHS
    packed = pack_padded_sequence(x, lengths, bool(options.get("batch_first")), enforce_sorted=in_order)
    hx = states(kind, options) if given else None
    module.routed = True
    y, after = travel(Route(M, N, IDS), module, packed, hx)
    assert isinstance(y, PackedSequence)
    for ours, theirs in zip(y[1:], packed[1:], strict=True):  # batch sizes and the order of rows are the input's
        assert (ours is None and theirs is None) or torch.equal(ours, theirs)
    padded, found = pad_packed_sequence(y, batch_first=True)
    assert torch.equal(found, lengths)
    rows = x if options.get("batch_first") else x.transpose(0, 1)
    for n, i in enumerate(IDS.tolist()):
        row = rows[n : n + 1, : lengths[n]]
        mine = None if hx is None else _map(hx, lambda state, n=n: state[:, n : n + 1].contiguous())
        expected, state = module.plain(i)(row if options.get("batch_first") else row.transpose(0, 1), mine)
        close(padded[n, : lengths[n]], expected.reshape(int(lengths[n]), -1))
        for ours, theirs in zip(leaves(after), leaves(state), strict=True):
            close(ours[:, n : n + 1], theirs)


@every_kind
def test_torchs_names_and_what_trains_come_back(kind: str, options: dict[str, Any]) -> None:
    plain = randomise(getattr(nn, kind)(WIDTH, H, **options).double())
    for name, parameter in plain.named_parameters():
        parameter.requires_grad_("weight" in name)
    model = be.convert(plain, members=M, init="ones", combine="mean")
    back = model.extract(2)
    assert type(back) is type(plain)
    assert list(back.state_dict()) == list(plain.state_dict())
    for (name, ours), (_, theirs) in zip(back.named_parameters(), plain.named_parameters(), strict=True):
        assert ours.requires_grad == theirs.requires_grad, name
        close(ours, theirs)
    assert all(p.requires_grad for n, p in model.named_parameters() if n[-2:] in (".r", ".s"))


def test_dropout_between_layers_only_in_training() -> None:
    module = layer("LSTM", {"num_layers": 2, "dropout": 0.9})
    x = batch({}, rows=M)
    torch.manual_seed(0)
    assert not torch.equal(module(x)[0], module(x)[0])
    module.eval()
    assert torch.equal(module(x)[0], module(x)[0])


def test_dropout_set_after_conversion_is_the_members_and_the_extracts() -> None:
    model = be.convert(nn.LSTM(WIDTH, H, 2, dropout=0.9, batch_first=True), members=M, combine="mean").train()
    x = torch.randn(N, T, WIDTH)
    model.net.dropout = 0.0
    assert torch.equal(model(x)[0], model(x)[0])
    assert model.extract(0).dropout == 0.0


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_networks_may_ask_what_their_layers_are(kind: str) -> None:
    class Asking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([getattr(nn, kind)(WIDTH, H, batch_first=True), nn.Linear(H, 2)])

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x)[0] if isinstance(layer, getattr(nn, kind)) else layer(x)
            return x

    model, x = randomise(be.convert(Asking().double(), members=M)).eval(), batch({"batch_first": True})
    for i in range(M):
        close(model.members(x)[i], model.extract(i)(x))


def test_a_backward_hook_survives_conversion() -> None:
    seen: list[str] = []
    net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GRU(WIDTH, H, batch_first=True))
    net[1].register_full_backward_hook(lambda *_: seen.append("back"))
    be.convert(net, members=M, combine="mean").train()(torch.randn(M, T, WIDTH))[0].sum().backward()
    assert seen == ["back"]


def test_a_mode_and_a_hook_survive_conversion() -> None:
    seen: list[str] = []
    net = nn.LSTM(WIDTH, H).eval()
    net.register_forward_hook(lambda *_: seen.append("after"))
    net.register_forward_pre_hook(lambda *_: seen.append("before"))
    model = be.convert(net, members=M, combine="mean", batch_dim=1)
    assert not model.training
    model(torch.randn(T, 7, WIDTH))
    model.extract(0)(torch.randn(T, 7, WIDTH))
    assert seen == ["before", "after"] * 2


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_networks_may_flatten_parameters(kind: str) -> None:
    class Flattening(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recurrent = getattr(nn, kind)(WIDTH, H, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            self.recurrent.flatten_parameters()
            return self.recurrent(x)[0]

    model = randomise(be.convert(Flattening().double(), members=M, combine="mean")).eval()
    x = batch({"batch_first": True})
    for i in range(M):
        close(model(x, member=i), model.extract(i)(x))


def test_gradients_reach_only_members_with_rows() -> None:
    module = layer("LSTM", {})
    module.routed = True
    y, _ = travel(Route(M, N, torch.tensor([2, 0, 2, 0])), module, batch({}))
    y.square().sum().backward()
    for name, parameter in module.named_parameters():
        if name[-2:] in (".r", ".s"):
            assert parameter.grad[1].abs().sum() == 0
            assert (parameter.grad[[0, 2]].flatten(1).abs().sum(1) > 0).all()


def test_a_subclass_has_its_say_in_a_members_call() -> None:
    class Twice(nn.GRU):
        def permute_hidden(self, hx: Tensor, permutation: Tensor | None) -> Tensor:
            return 2 * super().permute_hidden(hx, permutation)

    net, x = Twice(WIDTH, H, batch_first=True).double(), torch.randn(N, T, WIDTH, dtype=torch.float64)
    model = be.convert(net, M, init="ones", combine="mean").eval()
    close(model.members(x)[0][0], net(x)[0])


@every_kind
def test_weights_are_drawn_anew_as_torch_draws_them(kind: str, options: dict[str, Any]) -> None:
    drawn = layer(kind, options)
    before = {name: value.clone() for name, value in drawn.named_parameters()}
    for module in drawn.modules():  # as a network is started that was made on the meta device
        module.reset_parameters()
    for name, value in drawn.named_parameters():
        assert not torch.equal(value, before[name])
        assert name.endswith((".r", ".s")) or value.abs().max() <= H**-0.5


def test_vanilla_recurrence_is_left() -> None:
    net = nn.ModuleDict({"rnn": nn.RNN(3, 3), "cell": nn.LSTMCell(3, 3), "head": nn.Linear(3, 3)})
    left = be.convert(net, members=2).conversion.left
    assert set(left) == {"rnn", "cell"}
    assert "no rank-one form of RNN" in left["rnn"]


@every_kind
@pytest.mark.parametrize("owner", [None, 1, IDS[:0]], ids=["blocks", "one member", "ids"])
def test_a_batch_without_rows(kind: str, options: dict[str, Any], owner: Any) -> None:
    routed = layer(kind, options)
    routed.routed = True
    found = travel(Route(M, 0, owner), routed, batch(options, rows=0))
    expected = routed.plain(0)(batch(options, rows=0))
    assert [t.shape for t in leaves(found)] == [t.shape for t in leaves(expected)]


def test_users_are_not_advised_to_flatten_weights_that_are_made_for_each_call() -> None:
    told = (
        "import warnings, batchensemble\n"
        "warnings.warn('RNN module weights are not part of single contiguous chunk of memory.')\n"  # cuDNN's words
        "warnings.warn('anything else')\n"
    )
    seen = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stderr
    assert "anything else" in seen
    assert "RNN module weights" not in seen
