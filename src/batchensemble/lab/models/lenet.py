"""LeNet-5 with rectifiers and max pooling, for 32x32 images."""

import torch
from torch import nn

from batchensemble.lab.models.initialise import he_normal_


def lenet(classes: int = 10, *, channels: int = 3, generator: torch.Generator | None = None) -> nn.Sequential:
    """Two 5x5 convolutions (6 and 16 filters), each pooled by two, then dense layers of 120 and 84 units.

    Args:
        classes: number of logits.
        channels: channels of the images: 3, or 1 for digits.
        generator: source of the initial weights; `None` follows `torch.manual_seed`.

    Examples:
        >>> net = lenet(10, channels=1)
        >>> net(torch.zeros(2, 1, 32, 32)).shape, sum(p.numel() for p in net.parameters())
        (torch.Size([2, 10]), 61706)
    """
    net = nn.Sequential(
        nn.Conv2d(channels, 6, 5),
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
