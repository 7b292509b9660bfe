import pytest
import torch
from torch import nn

from batchensemble.lab.models import reduced_resnet18, resnet, resnet50


def count(net):
    return sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize(
    ("depth", "classes", "parameters"),
    [(32, 10, 7_427_914), (32, 100, 7_451_044), (14, 10, 2_777_674), (14, 100, 2_800_804)],
)
def test_parameters_are_the_papers(depth, classes, parameters):
    with torch.device("meta"):
        assert count(resnet(depth, width=4, classes=classes)) == parameters


@pytest.mark.parametrize(("classes", "head_width", "batch_ensemble"), [(10, 155, 7_466_652), (100, 182, 7_490_412)])
def test_dropout_head_matches_the_parameters_of_batch_ensemble(classes, head_width, batch_ensemble):
    with torch.device("meta"):
        counts = {w: count(resnet(32, 4, classes, head_width=w, dropout=0.1)) for w in (154, 155, 156, 181, 182, 183)}
    assert min(counts, key=lambda w: abs(counts[w] - batch_ensemble)) == head_width


def test_reduced_resnet18_and_resnet50_have_the_known_sizes():
    with torch.device("meta"):
        assert count(reduced_resnet18(classes=None)) == 1_093_140
        assert count(reduced_resnet18(classes=100)) - 1_093_140 == 16_100
        assert count(resnet50(classes=1000)) == 25_557_032


def test_layers_are_those_of_the_paper():
    net = resnet(14, width=2, classes=10)
    convolutions = [m for m in net.modules() if isinstance(m, nn.Conv2d)]
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(convolutions) == len(norms) == 1 + 12 + 2  # stem, blocks, projections
    assert all(c.bias is None for c in convolutions)
    assert all((n.eps, n.momentum) == (1e-5, 0.1) for n in norms)
    assert [c.out_channels for c in convolutions if c.kernel_size == (1, 1)] == [64, 128]
    assert [c.stride for c in convolutions].count((2, 2)) == 4


def test_stages_halve_the_image_and_the_pool_takes_the_mean():
    net = resnet(8, width=1, classes=10).eval()
    x = torch.randn(2, 3, 32, 32)
    before_pool = net.backbone[:4](x)
    assert before_pool.shape == (2, 64, 8, 8)
    torch.testing.assert_close(net.backbone(x), before_pool.mean((2, 3)))
    torch.testing.assert_close(net(x), net.head.classifier(before_pool.mean((2, 3))))


def test_kernels_are_he_normal_and_the_head_too():
    net = resnet(8, width=8, classes=100, generator=torch.Generator().manual_seed(0))
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.weight.numel() > 5000:
            fan_in = layer.weight[0].numel()
            assert layer.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.05)
    assert not net.head.classifier.bias.any()


def test_generator_alone_decides_the_weights():
    nets = []
    for noise in (1, 2):
        torch.manual_seed(noise)
        nets.append(resnet(8, 1, generator=torch.Generator().manual_seed(5)))
    for one, two in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(one, two)
    torch.manual_seed(3)
    first = resnet(8, 1).backbone.stem.conv.weight
    torch.manual_seed(3)
    assert torch.equal(first, resnet(8, 1).backbone.stem.conv.weight)


def test_block_dropout_stands_before_every_block_convolution_and_changes_no_names():
    plain, dropped = resnet(8, 1), resnet(8, 1, dropout=0.2, block_dropout=0.3)
    assert plain.state_dict().keys() == dropped.state_dict().keys()
    rates = [m.p for m in dropped.modules() if isinstance(m, nn.Dropout)]
    assert rates == [0.3] * 6 + [0.2]
    for name, module in dropped.named_modules():
        if name.endswith("branch"):
            kinds = [type(m) for m in module]
            before = [kinds[i - 1] for i, kind in enumerate(kinds) if kind is nn.Conv2d]
            assert before == [nn.Dropout, nn.Dropout]


def test_channels_last_gives_the_same_answers():
    net, x = resnet(8, 1).double().eval(), torch.randn(2, 3, 32, 32, dtype=torch.float64)
    expected = net(x)
    last = net.to(memory_format=torch.channels_last)(x.to(memory_format=torch.channels_last))
    torch.testing.assert_close(last, expected)


@pytest.mark.parametrize("depth", [2, 9, 31])
def test_wrong_depth_is_refused(depth):
    with pytest.raises(ValueError, match=f"6n \\+ 2.*got {depth}"):
        resnet(depth)


def test_a_head_option_without_a_head_is_refused():
    with pytest.raises(ValueError, match="classes must be given"):
        resnet(8, classes=None, dropout=0.1)


def test_resnet50_answers_on_an_image():
    with torch.no_grad():
        assert reduced_resnet18(5).eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 5)
        assert resnet50(7).eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 7)
