"""Fully connected networks."""

from collections.abc import Sequence

import torch
from torch import nn

from batchensemble.lab.models.head import make_head, named
from batchensemble.lab.models.initialise import he_normal_, uniform_


def mlp(inputs: int, hidden: Sequence[int], outputs: int, *, generator: torch.Generator | None = None) -> nn.Sequential:
    """Dense layers with rectifiers between them; images are flattened first.

    Args:
        inputs: size of one (flattened) row.
        hidden: widths of the hidden layers; empty for a linear model.
        outputs: number of outputs.
        generator: source of the initial weights; `None` follows `torch.manual_seed`.

    Examples:
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


def dense_classifier(
    inputs: int,
    hidden: Sequence[int],
    classes: int,
    *,
    head_width: int | None = None,
    dropout: float = 0.0,
    block_dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """A fully connected classifier of rows `(N, inputs)`, in two parts like a ResNet: `backbone` and `head`.

    Args:
        inputs: number of features.
        hidden: widths of the hidden layers.
        classes: number of logits.
        head_width: width of one more dense layer before the classifier.
        dropout: dropout rate right before the classifier.
        block_dropout: dropout rate after every hidden layer.
        generator: source of the initial weights; `None` follows `torch.manual_seed`.

    Examples:
        >>> dense_classifier(8, [32, 16], 3)(torch.zeros(5, 8)).shape
        torch.Size([5, 3])
    """
    layers: list[nn.Module] = []
    for before, width in zip([inputs, *hidden], hidden, strict=False):
        layers += [nn.Linear(before, width), nn.ReLU()]
        layers += [nn.Dropout(block_dropout)] if block_dropout else []
    head = make_head(hidden[-1], classes, head_width, dropout)
    net = named({"backbone": nn.Sequential(*layers), "head": head})
    uniform_(net, generator)
    return net
