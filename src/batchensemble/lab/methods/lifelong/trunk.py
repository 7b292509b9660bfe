"""A plain network without its head, divided into blocks, where lateral connections and growth attach."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from batchensemble.lab.models import ResNet, lenet, reduced_resnet18, resnet50


class Trunk(nn.Module):
    """Maps images to features, block by block.

    Args:
        blocks: blocks in order; all but the last may return maps `(N, channels, H, W)` or rows `(N, channels)`.
        widths: output channels of every block; the last are the features.
    """

    def __init__(self, blocks: Sequence[nn.Sequential], widths: Sequence[int]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.widths = tuple(widths)

    @property
    def features(self) -> int:
        """The number of features."""
        return self.widths[-1]

    def forward(self, x: Tensor) -> Tensor:
        """Map `(N, C, H, W)` to `(N, features)`."""
        for block in self.blocks:
            x = block(x)
        return x


def lenet_trunk(generator: torch.Generator) -> Trunk:
    """LeNet up to its 84 features: two convolutions, two dense layers.

    Examples:
        >>> lenet_trunk(torch.Generator())(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 84])
    """
    layers = list(lenet(2, generator=generator))
    places = ((0, 3), (3, 6), (6, 9), (9, 11))  # a flatten goes with the layer that needs it
    return Trunk([nn.Sequential(*layers[a:b]) for a, b in places], (6, 16, 120, 84))


def resnet18_trunk(generator: torch.Generator, filters: int = 20) -> Trunk:
    """The reduced ResNet-18: stem, four stages, pool.

    Examples:
        >>> resnet18_trunk(torch.Generator(), filters=2)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 16])
    """
    net = reduced_resnet18(None, filters=filters, generator=generator)
    return _resnet_trunk(net, (filters, filters, 2 * filters, 4 * filters, 8 * filters))


def resnet50_trunk(generator: torch.Generator | None, filters: int = 64) -> Trunk:
    """ResNet-50: stem, four stages, pool.

    Examples:
        >>> with torch.device("meta"):
        ...     trunk = resnet50_trunk(None)
        >>> sum(p.numel() for p in trunk.parameters())
        23508032
    """
    net = resnet50(None, filters=filters, generator=generator)
    return _resnet_trunk(net, (filters, *(4 * filters * 2**i for i in range(4))))


def _resnet_trunk(net: ResNet, widths: tuple[int, ...]) -> Trunk:
    *parts, pool, flat = net.backbone
    blocks = [part if isinstance(part, nn.Sequential) else nn.Sequential(part) for part in parts]
    return Trunk([*blocks, nn.Sequential(pool, flat)], (*widths, widths[-1]))
