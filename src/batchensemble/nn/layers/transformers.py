"""What is peculiar to Hugging Face's Transformers: a linear layer of its own, and weights tied by a config."""

from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.nn.layers.linear import RankOneLayer
from batchensemble.nn.speed.stacked_linear import stacked_linear


def is_conv1d(module: nn.Module) -> bool:
    """Whether a module is Transformers' `Conv1D`, asked without importing that package."""
    return type(module).__name__ == "Conv1D" and type(module).__module__ == "transformers.pytorch_utils"


class Conv1D(RankOneLayer):
    """Transformers' `Conv1D`, a linear layer whose weight is `(in, out)`; made by `batchensemble.convert`.

    Shapes as in `Linear`.
    """

    input_first = True
    stackable = True

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """`x W + b`, or `x_i W_i + b_i` for a stack of weights."""
        if weight.ndim == 2:
            return x @ weight if bias is None else x @ weight + bias
        return stacked_linear(x, weight.transpose(1, 2), bias)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start as a new layer does; the values are those of Transformers' constructor, which has no such method."""
        self.weight.normal_(std=0.02)
        self.bias.zero_()
        self.start_members_()


def declare_untied_(net: nn.Module) -> None:
    """Say in a network's config that weights are untied: folding made them differ, and loading would tie them again."""
    config: Any = getattr(net, "config", None)
    if getattr(config, "tie_word_embeddings", False):
        config.tie_word_embeddings = False
