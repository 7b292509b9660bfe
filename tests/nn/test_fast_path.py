"""torch's fused encoder kernels read weights behind the layers' back: off in an ensemble, on again in an extract."""

import pytest
import torch
from layer_cases import randomise
from torch import nn

import batchensemble as be
from batchensemble.nn.conversion.fast_path import off_everywhere


def encoder(nested: bool = True) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested).eval()


def switches(net: nn.Module) -> list[object]:
    return [net.use_nested_tensor, *(layer.activation_relu_or_gelu for layer in net.layers)]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("include", [None, "*.linear1", "*.self_attn"])
def test_members_answer_for_themselves_without_gradients(members: int, include: str | None) -> None:
    """With one member the fused kernel would silently answer for the plain network."""
    model = randomise(be.convert(encoder(), members=members, include=include, combine="mean")).eval()
    x = torch.randn(4, 5, 4)
    with torch.no_grad():
        fused = model.members(x)
    torch.testing.assert_close(fused, model.members(x))
    assert not torch.allclose(fused[0], encoder()(x), atol=1e-3)


def test_the_switches_come_back_with_the_plain_network() -> None:
    net = encoder()
    model = be.convert(net, members=2, combine="mean")
    assert switches(net) == switches(model.extract(1)) == [True, 1, 1]
    assert switches(model.net) == [False, 0, 0]
    assert vars(model.extract(0)).keys() == vars(net).keys()
    assert switches(be.convert(encoder(nested=False), members=2).extract(0))[0] is False


def test_an_encoder_without_a_converted_layer_keeps_its_kernels() -> None:
    net = nn.ModuleDict({"plain": encoder(), "head": nn.Linear(4, 2)})
    assert switches(be.convert(net, members=2, include="head").net["plain"]) == [True, 1, 1]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_an_extract_really_uses_them() -> None:
    model = randomise(be.convert(encoder(), members=2, combine="mean")).eval()
    x, padding = torch.randn(4, 5, 4), torch.arange(5) > torch.tensor([[4], [2], [1], [3]])
    with torch.no_grad():
        plain = model.extract(1).eval()(x, src_key_padding_mask=padding)
        ours = model(x, src_key_padding_mask=padding, member=1)
    assert bool((plain[padding] == 0).all())  # what nested tensors leave where there was padding
    torch.testing.assert_close(plain[~padding], ours[~padding], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("enabled", [True, False])
def test_calls_that_overlap_leave_torchs_switch_off_until_the_last_one_ends(enabled: bool) -> None:
    switch = torch.backends.mha
    usual = switch.get_fastpath_enabled()
    switch.set_fastpath_enabled(enabled)
    try:
        first, second = off_everywhere(), off_everywhere()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not switch.get_fastpath_enabled()
        second.__exit__(None, None, None)
        assert switch.get_fastpath_enabled() is enabled
    finally:
        switch.set_fastpath_enabled(usual)
