"""The original Transformer: its size, its shape, its start."""

import pytest
import torch

import batchensemble as be
from batchensemble.lab.models.transformer import CROSS_ATTENTION, PAD, SELF_ATTENTION, dropping, transformer


@pytest.mark.parametrize(("size", "published"), [("base", 65e6), ("big", 213e6)])
def test_as_large_as_published(size, published):
    with torch.device("meta"):
        net = transformer(37_000, size)
    assert sum(p.numel() for p in net.parameters()) == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize(("size", "layers", "width"), [("base", 6, 512), ("big", 6, 1024)])
def test_members_cost_two_vectors_and_a_bias_per_projection(size, layers, width):
    with torch.device("meta"):
        net = transformer(37_000, size)
        model = be.convert(net, 4, include=SELF_ATTENTION)
        wider = be.convert(net, 4, include=SELF_ATTENTION + CROSS_ATTENTION)
    extra, more = (sum(p.numel() for p in one.parameters()) - sum(p.numel() for p in net.parameters())
                   for one in (model, wider))  # fmt: skip
    assert extra == 2 * layers * 4 * (4 * 2 + 3) * width
    assert more == extra * 3 // 2
    assert {name.split(".")[4] for name in model.conversion.converted} == {"self_attn"}
    assert len(model.conversion.converted) == 2 * layers * 4


def words(rows=3, length=6, seed=0):
    return torch.randint(3, 50, (rows, length), generator=torch.Generator().manual_seed(seed))


def test_weights_follow_the_generator_and_nothing_else():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    nets = [transformer(50, "toy", generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(torch.rand(2), expected)
    one, same, other = (net.state_dict() for net in nets)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["model.shared.weight"], other["model.shared.weight"])


def test_one_matrix_embeds_and_classifies():
    net = transformer(50, "toy")
    assert net.lm_head.weight is net.model.shared.weight is net.model.encoder.embed_tokens.weight
    assert net.model.decoder.embed_tokens.weight is net.model.shared.weight
    assert not net.model.shared.weight[PAD].any()


def test_norms_come_after_the_sum_and_units_are_rectified():
    layer = transformer(50, "toy").eval().model.encoder.layers[0]
    x = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(1))
    attended = layer.self_attn(x, attention_mask=None)[0]
    h = layer.self_attn_layer_norm(x + attended)
    expected = layer.final_layer_norm(h + layer.fc2(torch.relu(layer.fc1(h))))
    torch.testing.assert_close(layer(x, None), expected)


def test_padding_changes_nothing():
    net = transformer(50, "toy").eval()
    source, target = words(), words(seed=1)
    longer = torch.cat([source, torch.zeros(3, 4, dtype=torch.long)], 1)
    short = net(input_ids=source, attention_mask=source.ne(PAD), decoder_input_ids=target).logits
    padded = net(input_ids=longer, attention_mask=longer.ne(PAD), decoder_input_ids=target).logits
    torch.testing.assert_close(padded, short)


def test_dropout_at_test_time_and_back():
    net = transformer(50, "toy", dropout=0.1, inner_dropout=0.2).eval()
    source, target = words(), words(seed=1)
    still = net(input_ids=source, decoder_input_ids=target).logits
    with dropping(net, 0.0):
        assert net.training
        torch.testing.assert_close(net(input_ids=source, decoder_input_ids=target).logits, still)
    with dropping(net, 0.5):
        assert not torch.allclose(net(input_ids=source, decoder_input_ids=target).logits, still, atol=0.1)
    assert not any(module.training for module in net.modules())
    layer = net.model.decoder.layers[0]
    assert (layer.dropout, layer.activation_dropout, layer.self_attn.dropout) == (0.1, 0.2, 0.2)


def test_an_unknown_size():
    with pytest.raises(ValueError, match="one of base, big, small, toy; got 'huge'"):
        transformer(50, "huge")
