"""Graphs of `torch.func`'s transforms take the layers' plain forms."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp, vmap

import batchensemble as be

NETWORKS = {
    "linear": lambda: nn.Linear(3, 2),
    "convolution": lambda: nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.Flatten()),
}
INPUTS = {"linear": (5, 40, 3), "convolution": (5, 4, 2, 4, 4)}  # five batches


@pytest.mark.parametrize("name", NETWORKS)
def test_transforms_within_a_graph(name: str) -> None:
    torch.manual_seed(0)
    model = be.convert(NETWORKS[name](), 2, combine="mean").double().train()
    weights = dict(model.named_parameters())
    x = torch.randn(INPUTS[name], dtype=torch.float64)

    def loss(weights: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(model, weights, (x,)).square().sum()  # type: ignore[no-any-return]

    def each(weights: dict[str, Tensor], x: Tensor) -> Any:
        return vmap(grad(loss), (None, 0))(weights, x)

    def along(weights: dict[str, Tensor], x: Tensor) -> Any:
        return jvp(loss, (weights, x[0]), (weights, x[1]))

    for function in (each, along):
        torch.compiler.reset()
        compiled = torch.compile(function, backend="eager")
        torch.testing.assert_close(compiled(weights, x), function(weights, x))
