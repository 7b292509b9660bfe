"""Attention for members against torch's own, in every way that torch's can be called."""

from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from layer_cases import M, randomise
from torch import Tensor, nn

import batchensemble as be
from batchensemble.nn.routing.route import Route, travel

N, L, S, E, H = 2, 3, 4, 4, 2
close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
KINDS: dict[str, dict[str, Any]] = {
    "packed": {},
    "no bias": {"bias": False},
    "other key and value sizes": {"kdim": 3, "vdim": 5},
    "extra key": {"add_bias_kv": True},
    "zero key": {"add_zero_attn": True},
    "both, separate": {"add_bias_kv": True, "add_zero_attn": True, "kdim": 3, "vdim": 5, "bias": False},
}
every_kind = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)


def inputs(options: dict[str, Any], batch_first: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    sizes = ((L, E), (S, options.get("kdim", E)), (S, options.get("vdim", E)))
    given = [torch.randn(N, *size, generator=generator, dtype=torch.float64) for size in sizes]
    q, k, v = given if batch_first else [t.transpose(0, 1) for t in given]
    return q, k, v


def masks() -> dict[str, dict[str, Tensor]]:
    causal = torch.ones(L, S, dtype=torch.bool).triu(1)
    weights = torch.randn(L, S, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    heads = torch.randn(N * H, L, S, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    padding = torch.arange(S) >= torch.tensor([[2], [4]])
    return {
        "none": {},
        "bool": {"attn_mask": causal},
        "float": {"attn_mask": weights},
        "bool per head": {"attn_mask": heads > 1},
        "float per head": {"attn_mask": heads},
        "padding": {"key_padding_mask": padding},
        "float padding": {"key_padding_mask": padding.double() * -3},
        "bool and padding": {"attn_mask": causal, "key_padding_mask": padding},
        "per head and padding": {"attn_mask": heads, "key_padding_mask": padding.double() * -3},
    }


def of_members(mask: dict[str, Tensor]) -> dict[str, Tensor]:
    """The masks as they reach a bare layer: what has rows, once for every member."""
    repeated = {"attn_mask": 3, "key_padding_mask": 2}
    return {name: torch.cat([t] * M) if t.ndim == repeated[name] else t for name, t in mask.items()}


def attention(options: dict[str, Any], batch_first: bool = True) -> nn.Module:
    return randomise(be.nn.MultiheadAttention(E, H, members=M, batch_first=batch_first, **options).double())


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("mask", masks())
@every_kind
def test_every_mask_and_every_kind(options: dict[str, Any], mask: str, batch_first: bool) -> None:
    layer, given, mine = attention(options, batch_first), inputs(options, batch_first), masks()[mask]
    rows = 0 if batch_first else 1
    for needs, average in ((True, True), (True, False), (False, True)):
        how = {"need_weights": needs, "average_attn_weights": average}
        y, weights = layer(*(torch.cat([t] * M, rows) for t in given), **of_members(mine), **how)
        for i, part in enumerate(y.chunk(M, rows)):
            expected, expected_weights = layer.plain(i)(*given, **mine, **how)
            close(part, expected)
            if needs:
                close(weights.chunk(M)[i], expected_weights)
            else:
                assert weights is None


@every_kind
def test_the_mask_of_one_batch_serves_every_copy(options: dict[str, Any]) -> None:
    layer, given = attention(options), inputs(options)
    mask = masks()["float per head"]["attn_mask"]
    copies = [torch.cat([t] * M) for t in given]
    close(layer(*copies, attn_mask=mask)[0], layer(*copies, attn_mask=torch.cat([mask] * M))[0])


def test_a_mask_that_fits_neither_rows_nor_copies_is_refused() -> None:
    layer, (q, k, v) = attention({}), inputs({})
    with pytest.raises(ValueError, match="attn_mask has 5 entries on its first axis, expected 12"):
        layer(*(torch.cat([t] * M) for t in (q, k, v)), attn_mask=torch.zeros(5, L, S, dtype=torch.float64))


@pytest.mark.parametrize("owner", [None, 1, torch.arange(M * N) % M], ids=["dealt", "one", "ids"])
@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask"])
def test_rows_that_are_there_once_need_a_mask_each(name: str, owner: Any) -> None:
    layer, given = attention({}), [torch.cat([t] * M) for t in inputs({})]
    mask = {name: torch.zeros((N * H, L, S) if name == "attn_mask" else (N, S), dtype=torch.float64)}
    with pytest.raises((RuntimeError, AssertionError)):
        layer.plain(0)(*given, **mask)
    for part in layer.modules():
        part.routed = True
    with pytest.raises(ValueError, match=f"{name} has"):
        travel(Route(M, M * N, owner), layer, *given, **mask)
    travel(Route(M, M * N, None, repeated=M), layer, *given, **mask)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("shape", [(1, S), (L, 1), (N * H * M, 1, S), (N * M, 1)], ids=str)
def test_a_mask_is_not_stretched(shape: tuple[int, ...], batch_first: bool) -> None:
    layer, axis = attention({}, batch_first), 0 if batch_first else 1
    given = [torch.cat([t] * M, axis) for t in inputs({}, batch_first)]
    name = "key_padding_mask" if shape == (N * M, 1) else "attn_mask"
    mask = {name: torch.zeros(shape, dtype=torch.float64)}
    with pytest.raises((RuntimeError, AssertionError)):
        layer.plain(0)(*given, **mask)
    with pytest.raises(ValueError, match=f"{name} has shape"):
        layer(*given, **mask)


def test_what_torch_refuses_is_refused() -> None:
    layer, (q, k, v) = attention({}), inputs({})
    with pytest.raises(ValueError, match="give attn_mask too"):
        layer(*(torch.cat([t] * M) for t in (q, k, v)), is_causal=True)
    with pytest.raises(ValueError, match="members need a batch"):
        layer(q[0], k[0], v[0])


@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_masks_of_integers_are_refused(name: str, dtype: torch.dtype) -> None:
    layer, given = attention({}), inputs({})
    mask = {name: torch.ones((L, S) if name == "attn_mask" else (N, S), dtype=dtype)}
    with pytest.raises(AssertionError, match=f"floating types of {name}"):
        layer.plain(0)(*given, **mask)
    with pytest.raises(ValueError, match=rf"{name} must be boolean .* got {dtype}"):
        layer(*(torch.cat([t] * M) for t in given), **of_members(mask))


@pytest.mark.parametrize("shape", [(N * M, 1, S), (S,)], ids=str)
def test_a_padding_mask_has_two_axes(shape: tuple[int, ...]) -> None:
    layer, given = attention({}), [torch.cat([t] * M) for t in inputs({})]
    with pytest.raises(ValueError, match="key_padding_mask has shape"):
        layer(*given, key_padding_mask=torch.zeros(shape, dtype=torch.bool))


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("single", [(0,), (1, 2), (2,)], ids=["query", "key and value", "value"])
def test_a_single_row_does_not_serve_all(single: tuple[int, ...], batch_first: bool) -> None:
    layer, axis = attention({}, batch_first), 0 if batch_first else 1
    given = [t.narrow(axis, 0, 1) if at in single else t for at, t in enumerate(inputs({}, batch_first))]
    with pytest.raises((RuntimeError, AssertionError)):
        layer.plain(0)(*given)
    for part in layer.modules():
        part.routed = True
    with pytest.raises(ValueError, match=f"as many rows on axis {axis}, got shapes"):
        travel(Route(M, N, 1), layer, *given)


def test_dropout_only_in_training() -> None:
    layer, given = attention({"dropout": 0.9}), [torch.cat([t] * M) for t in inputs({})]
    for needs in (True, False):
        torch.manual_seed(0)
        dropped = layer.train()(*given, need_weights=needs)[0]
        assert not torch.allclose(dropped, layer.eval()(*given, need_weights=needs)[0])
        close(layer(*given, need_weights=needs)[0], layer(*given)[0])


@every_kind
def test_conversion_keeps_the_weights_and_what_trains(options: dict[str, Any]) -> None:
    for frozen in ("weight", "bias", "nothing"):
        plain = randomise(nn.MultiheadAttention(E, H, batch_first=True, **options).double())
        for name, parameter in plain.named_parameters():
            parameter.requires_grad_(frozen not in name)
        back = be.convert(plain, members=M, init="ones", combine="mean").extract(1)
        assert {n: p.requires_grad for n, p in back.named_parameters()} == {
            n: p.requires_grad for n, p in plain.named_parameters()
        }
        for name, tensor in plain.state_dict().items():
            close(back.state_dict()[name], tensor)


@every_kind
def test_it_starts_as_torchs_own(options: dict[str, Any]) -> None:
    layer, plain = be.nn.MultiheadAttention(64, H, members=M, **options), nn.MultiheadAttention(64, H, **options)
    randomise(layer)
    layer._reset_parameters()
    assert all(bool((part.r.abs() == 1).all()) for part in layer.children())
    for name, tensor in layer.plain(0).state_dict().items():  # a member's signs leave the spread as it is
        torch.testing.assert_close(tensor.std(), plain.state_dict()[name].std(), rtol=0.4, atol=0)


def test_fast_weights_of_a_frozen_attention_train() -> None:
    model = be.convert(nn.MultiheadAttention(E, H).requires_grad_(False), members=M, combine="mean")
    assert {n.split(".")[-1] for n, p in model.named_parameters() if p.requires_grad} == {"r", "s"}


ENCODER = {"d_model": E, "nhead": H, "dim_feedforward": 6, "dropout": 0.0}


@pytest.mark.parametrize(("norm_first", "batch_first", "padded"), list(product([False, True], repeat=3)))
@pytest.mark.parametrize("grad", [True, False])
def test_inside_torchs_encoder(norm_first: bool, batch_first: bool, padded: bool, grad: bool) -> None:
    layer = nn.TransformerEncoderLayer(**ENCODER, norm_first=norm_first, batch_first=batch_first)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double()
    axis = 0 if batch_first else 1
    model = randomise(be.convert(net, members=M, combine="mean", batch_dim=axis, shared_inputs="mask")).eval()
    x = torch.randn(5, 3, E, dtype=torch.float64).movedim(0, axis)
    padding = {"src_key_padding_mask": torch.arange(3) > torch.tensor([[2], [0], [1], [1], [2]])} if padded else {}
    with torch.set_grad_enabled(grad):
        members = model.members(x, **padding)
        for i in range(M):
            close(members[i], model.extract(i).eval()(x, **padding))
        mask = torch.ones(3, 3, dtype=torch.bool).triu(1)
        close(model.members(x, mask=mask, **padding)[1], model.extract(1).eval()(x, mask=mask, **padding))


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("norm", ["shared", "member"])
def test_inside_torchs_decoder(norm: str, grad: bool) -> None:
    net = nn.TransformerDecoderLayer(**ENCODER, batch_first=True).double()
    model = be.convert(net, members=M, combine="mean", norm=norm, shared_inputs=("tgt_mask",))
    model = randomise(model).eval()
    target, memory = torch.randn(5, 3, E, dtype=torch.float64), torch.randn(5, 4, E, dtype=torch.float64)
    masked = {
        "tgt_mask": torch.ones(3, 3, dtype=torch.bool).triu(1),
        "memory_key_padding_mask": torch.arange(4) > torch.tensor([[2], [0], [1], [3], [2]]),
    }
    with torch.set_grad_enabled(grad):
        members, ids = model.members(target, memory, **masked), torch.tensor([2, 0, 1, 1, 2])
        for i in range(M):
            close(members[i], model.extract(i).eval()(target, memory, **masked))
        close(model(target, memory, **masked, member=ids), members[ids, torch.arange(5)])


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("name", ["float", "float per head", "float padding"])
def test_masks_of_another_precision_do_not_change_the_answers(name: str, need_weights: bool) -> None:
    layer, mask = attention({}).float(), of_members(masks()[name])
    single = {name: tensor.float() for name, tensor in mask.items()}
    x = torch.randn(M * N, S, E)
    found, expected = (layer(x[:, :L], x, x, need_weights=need_weights, **given)[0] for given in (mask, single))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
