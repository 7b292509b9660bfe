"""Small networks and ensembles of them, for the tests of the library's edge."""

from typing import Any

import torch
from torch import Tensor, nn

import batchensemble as be

M, N = 3, 7
IDS = torch.tensor([2, 0, 0, 1, 2, 2, 1])  # a member for each of N rows


def randomise(model: nn.Module, seed: int = 0) -> Any:
    """Values that no initialisation would give, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4 + 0.2)
    return model


def mlp(inputs: int = 4, outputs: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 6), nn.ReLU(), nn.Linear(6, outputs))


def convnet() -> nn.Sequential:
    """Convolutions, a norm, a linear layer: one order of rows for all of them."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )


class TiedWeights(nn.Module):
    """An output layer that is the embedding, as in language models."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.middle, self.head = nn.Embedding(6, 4), nn.Linear(4, 4), nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.middle(self.embed(x)))


def images(n: int = N) -> Tensor:
    return torch.randn(n, 3, 4, 4, generator=torch.Generator().manual_seed(1))


def rows(n: int = N, width: int = 4) -> Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(1))


def ensemble(net: nn.Module | None = None, members: int = M, **options: Any) -> Any:
    """An ensemble in evaluation mode whose members all differ."""
    return randomise(be.convert(mlp() if net is None else net, members=members, **options)).eval()
