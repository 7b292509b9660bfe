"""LeNet-5 with rectifiers and max pooling, for 32x32 or 28x28 images."""

import torch
from torch import nn

from .initialise import he_normal_


def lenet(
    classes: int = 10, *, channels: int = 3, size: int = 32, generator: torch.Generator | None = None
) -> nn.Sequential:
    """Two 5x5 convolutions (6 and 16 filters), each pooled by two, then dense layers of 120 and 84 units.

    28x28 images are padded by two in the first convolution, so that both sizes have the same parameters.

    Args:
        classes: Number of logits.
        channels: Channels of the images: 3, or 1 for digits.
        size: Height and width of the images, 32 or 28.
        generator: Source of the initial weights; `None` follows `torch.manual_seed`.

    Examples:
        >>> import torch
        >>> net = lenet(10, channels=1, size=28)
        >>> net(torch.zeros(2, 1, 28, 28)).shape, sum(p.numel() for p in net.parameters())
        (torch.Size([2, 10]), 61706)
    """
    if size not in (28, 32):
        raise ValueError(f"size must be 28 or 32, got {size}")
    net = nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=(32 - size) // 2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )
    he_normal_(net, generator)
    return net
