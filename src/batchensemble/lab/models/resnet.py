"""Residual networks: CIFAR's ResNet v1 of any depth and width, the reduced ResNet-18, and ResNet-50.

All share one class, `ResNet`: a stem, stages of residual blocks, an average pool, and a head.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from batchensemble.lab.models.head import make_head, named
from batchensemble.lab.models.initialise import he_normal_


class ResNet(nn.Module):
    """A backbone (stem, stages, average pool) and a head.

    `net.backbone` returns features `(N, net.features)`, and `net.head` turns them into logits `(N, classes)`.
    Parameters have the same names with and without dropout.

    Args:
        stem: the first layers.
        stages: the residual stages, in order.
        features: output channels of the last stage.
        classes: number of logits; `None` leaves the head out (it is the identity).
        head_width: width of one more dense layer before the classifier: the paper's MC-dropout network.
        dropout: dropout rate right before the classifier.
        generator: source of the initial weights; `None` follows `torch.manual_seed`.
    """

    def __init__(
        self,
        stem: nn.Sequential,
        stages: Sequence[nn.Sequential],
        features: int,
        classes: int | None,
        *,
        head_width: int | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.features = features
        named_stages = {f"stage{i}": stage for i, stage in enumerate(stages, start=1)}
        self.backbone = named({"stem": stem, **named_stages, "pool": nn.AdaptiveAvgPool2d(1), "flat": nn.Flatten()})
        self.head = make_head(features, classes, head_width, dropout)
        he_normal_(self, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map images `(N, C, H, W)` to logits `(N, classes)`."""
        logits: Tensor = self.head(self.backbone(x))
        return logits


def resnet(
    depth: int = 32,
    width: int = 4,
    classes: int | None = 10,
    *,
    channels: int = 3,
    head_width: int | None = None,
    dropout: float = 0.0,
    block_dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> ResNet:
    """CIFAR's ResNet v1: depth `6n + 2`, three stages of `n` blocks with `16, 32, 64` filters times `width`.

    Args:
        depth: number of weighted layers; `depth - 2` must be a multiple of six.
        width: multiplier of the filters: 4 in the paper's ResNet-32x4.
        classes: number of logits; `None` leaves the head out.
        channels: channels of the images.
        head_width: width of one more dense layer before the classifier. With 155 (10 classes) or 182 (100)
            ResNet-32x4 is as large as its BatchEnsemble of four members: the paper's MC-dropout network.
        dropout: dropout rate right before the classifier.
        block_dropout: dropout rate before every convolution of the residual branches.
        generator: source of the initial weights; `None` follows `torch.manual_seed`.

    Examples:
        >>> net = resnet(depth=8, width=1, classes=10, generator=torch.Generator().manual_seed(0))
        >>> net(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """
    if depth < 8 or (depth - 2) % 6:
        raise ValueError(f"depth must be 6n + 2 (8, 14, 20, 26, 32, ...), got {depth}")
    filters = [16 * width, 32 * width, 64 * width]
    stages = make_stages(basic_block, filters[0], filters, [(depth - 2) // 6] * 3, block_dropout)
    stem = small_stem(channels, filters[0])
    return ResNet(stem, stages, filters[-1], classes, head_width=head_width, dropout=dropout, generator=generator)


def reduced_resnet18(classes: int | None = 5, *, filters: int = 20, generator: torch.Generator | None = None) -> ResNet:
    """The ResNet-18 of lifelong learning on 32x32 images: a 3x3 stem and `filters` times `1, 2, 4, 8`.

    Examples:
        >>> backbone = reduced_resnet18(classes=None)
        >>> sum(p.numel() for p in backbone.parameters())
        1093140
    """
    widths = [filters * 2**i for i in range(4)]
    stages = make_stages(basic_block, filters, widths, [2, 2, 2, 2])
    return ResNet(small_stem(3, filters), stages, widths[-1], classes, generator=generator)


def resnet50(classes: int | None = 1000, *, filters: int = 64, generator: torch.Generator | None = None) -> ResNet:
    """ImageNet's ResNet-50, with the stride of a stage in the 3x3 convolution of its first block.

    Any number of filters will do; the published one has 64.

    Examples:
        >>> with torch.device("meta"):
        ...     net = resnet50(classes=None)
        >>> sum(p.numel() for p in net.parameters())
        23508032
    """
    stem = named(
        {
            "conv": nn.Conv2d(3, filters, 7, stride=2, padding=3, bias=False),
            "norm": nn.BatchNorm2d(filters),
            "relu": nn.ReLU(),
            "pool": nn.MaxPool2d(3, stride=2, padding=1),
        }
    )
    widths = [filters * 2**i for i in range(4)]
    stages = make_stages(bottleneck_block, filters, widths, [3, 4, 6, 3])
    return ResNet(stem, stages, 4 * widths[-1], classes, generator=generator)


class Residual(nn.Module):
    """`relu(branch(x) + shortcut(x))`; the shortcut projects (1x1 convolution, norm) where the shape changes."""

    def __init__(self, branch: nn.Sequential, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.branch = branch
        self.channels_out = channels_out
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = named(
                {
                    "conv": nn.Conv2d(channels_in, channels_out, 1, stride, bias=False),
                    "norm": nn.BatchNorm2d(channels_out),
                }
            )

    def forward(self, x: Tensor) -> Tensor:
        """Map `(N, C, H, W)` to `(N, C', H / stride, W / stride)`."""
        return torch.relu(self.branch(x) + self.shortcut(x))


Block = Callable[[int, int, int, float], Residual]
"""Maps `(channels in, filters, stride, dropout)` to one block."""


def basic_block(channels: int, filters: int, stride: int, dropout: float) -> Residual:
    """Two 3x3 convolutions."""
    layers = {
        **unit(1, channels, filters, 3, stride, dropout),
        "relu1": nn.ReLU(),
        **unit(2, filters, filters, 3, 1, dropout),
    }
    return Residual(named(layers), channels, filters, stride)


def bottleneck_block(channels: int, filters: int, stride: int, dropout: float) -> Residual:
    """A 1x1, a 3x3 and a 1x1 convolution; the last has four times the filters."""
    layers = {
        **unit(1, channels, filters, 1, 1, dropout),
        "relu1": nn.ReLU(),
        **unit(2, filters, filters, 3, stride, dropout),
        "relu2": nn.ReLU(),
        **unit(3, filters, 4 * filters, 1, 1, dropout),
    }
    return Residual(named(layers), channels, 4 * filters, stride)


def unit(index: int, channels: int, filters: int, size: int, stride: int, dropout: float) -> dict[str, nn.Module]:
    """Dropout (if any), convolution and norm, named by their place in the branch."""
    convolution = nn.Conv2d(channels, filters, size, stride, padding=size // 2, bias=False)
    dropped: dict[str, nn.Module] = {f"drop{index}": nn.Dropout(dropout)} if dropout else {}
    return {**dropped, f"conv{index}": convolution, f"norm{index}": nn.BatchNorm2d(filters)}


def make_stages(
    block: Block, channels: int, filters: Sequence[int], counts: Sequence[int], dropout: float = 0.0
) -> list[nn.Sequential]:
    """Stages of `counts` blocks with `filters`; every stage but the first halves height and width."""
    stages = []
    for stage, (width, count) in enumerate(zip(filters, counts, strict=True)):
        blocks = []
        for place in range(count):
            stride = 2 if stage > 0 and place == 0 else 1
            blocks.append(block(channels, width, stride, dropout))
            channels = blocks[-1].channels_out
        stages.append(nn.Sequential(*blocks))
    return stages


def small_stem(channels: int, filters: int) -> nn.Sequential:
    """The stem for small images: one 3x3 convolution, no pooling."""
    convolution = nn.Conv2d(channels, filters, 3, padding=1, bias=False)
    return named({"conv": convolution, "norm": nn.BatchNorm2d(filters), "relu": nn.ReLU()})
