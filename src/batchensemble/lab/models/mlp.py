"""Fully connected networks."""

from collections.abc import Sequence

import torch
from torch import nn

from .initialise import he_normal_


def mlp(inputs: int, hidden: Sequence[int], outputs: int, *, generator: torch.Generator | None = None) -> nn.Sequential:
    """Dense layers with rectifiers between them; images are flattened first.

    Args:
        inputs: Size of one (flattened) row.
        hidden: Widths of the hidden layers; empty for a linear model.
        outputs: Number of outputs.
        generator: Source of the initial weights; `None` follows `torch.manual_seed`.

    Examples:
        >>> import torch
        >>> net = mlp(64, [32, 16], 10)
        >>> net(torch.zeros(5, 1, 8, 8)).shape
        torch.Size([5, 10])
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    net = nn.Sequential(*layers, nn.Linear(inputs, outputs))
    he_normal_(net, generator)
    return net
