"""Initialisation of the laboratory's networks, from a generator."""

import torch
from torch import nn


def he_normal_(net: nn.Module, generator: torch.Generator | None) -> None:
    r"""Fill every kernel of `net` with :math:`N(0, 2 / \text{fan in})` and every bias with zero, in place.

    Convolutions and dense layers, including the head, are drawn in registration order; norms keep torch's own
    initial values (scale one, shift zero).

    Args:
        net: the network, modified in place.
        generator: source of the numbers; `None` follows `torch.manual_seed`.

    Examples:
        >>> layer = torch.nn.Linear(1000, 1000)
        >>> he_normal_(layer, torch.Generator().manual_seed(0))
        >>> round(layer.weight.var().item() * 1000, 1), layer.bias.abs().max().item()
        (2.0, 0.0)
    """
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def uniform_(net: nn.Module, generator: torch.Generator | None) -> None:
    r"""Fill weights and biases of every dense layer with :math:`U(\pm 1 / \sqrt{\text{fan in}})`, as torch does.

    Args:
        net: the network, modified in place.
        generator: source of the numbers; `None` follows `torch.manual_seed`.

    Examples:
        >>> layer = torch.nn.Linear(100, 1000)
        >>> uniform_(layer, torch.Generator().manual_seed(0))
        >>> [round(tensor.abs().max().item(), 2) for tensor in (layer.weight, layer.bias)]
        [0.1, 0.1]
    """
    for module in net.modules():
        if isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            for parameter in module.parameters():
                nn.init.uniform_(parameter, -bound, bound, generator=generator)
