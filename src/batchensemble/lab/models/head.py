"""The head of a classifier, and layers by name."""

from collections import OrderedDict

from torch import nn


def make_head(features: int, classes: int | None, head_width: int | None, dropout: float) -> nn.Module:
    """`[dense, relu,] [dropout,] classifier`, or the identity without classes."""
    if classes is None:
        if head_width or dropout:
            raise ValueError("head_width and dropout belong to a head: classes must be given, got None")
        return nn.Identity()
    layers: dict[str, nn.Module] = {}
    if head_width is not None:
        layers |= {"dense": nn.Linear(features, head_width), "relu": nn.ReLU()}
        features = head_width
    if dropout:
        layers["drop"] = nn.Dropout(dropout)
    layers["classifier"] = nn.Linear(features, classes)
    return named(layers)


def named(layers: dict[str, nn.Module]) -> nn.Sequential:
    """An `nn.Sequential` with named layers."""
    return nn.Sequential(OrderedDict(layers))
