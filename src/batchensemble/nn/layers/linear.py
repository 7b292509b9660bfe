"""The generic rank-one layer, whose thin subclasses name a torch operation, and the first of these, `Linear`.

y = ((x ∘ r_i) Wᵀ) ∘ s_i + b_i
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble.nn.equation import equation_5
from batchensemble.nn.rank_one import RankOne
from batchensemble.nn.routing.layer_input import check_features, rows_of, title
from batchensemble.nn.speed.stacked_linear import stacked_linear


class RankOneLayer(RankOne):
    """A linear torch layer whose members differ by rank-one matrices.

    Its subclasses also inherit from the torch layer that they ensemble, take that layer's arguments in its order, and
    define how the operation is applied.
    """

    rows_at: int | None = None  # None: where the route says the rows are

    def forward(self, input: Tensor) -> Tensor:
        """Answer `input`, whose batch axis holds the members' rows, as does that of the result."""
        return self._answer(input)

    def _answer(self, input: Tensor, **options: Any) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(f"{title(self)} expects a tensor, got {type(input).__name__}")
        if self.features_at == 1 and input.ndim != self.weight.ndim:
            raise ValueError(f"members need a batch: expected {self.weight.ndim} axes, got shape {tuple(input.shape)}")
        rows = rows_of(self, input, self.rows_at)
        check_features(self, input, self.r.shape[-1], self.features_at)
        return equation_5(self, input, rows, **options)


class Linear(RankOneLayer, nn.Linear):
    """`torch.nn.Linear` for members.

    `x (members * n, ..., in)` to `(members * n, ..., out)`; `r (members, in)`, `s (members, out)`, with a rank above 1
    `(members, rank, in)` and `(members, rank, out)`; `bias (members, out)`.

    Examples:
        >>> import torch
        >>> layer = Linear(6, 4, members=3)
        >>> layer(torch.ones(3 * 5, 6)).shape, layer.r.shape, layer.s.shape
        (torch.Size([15, 4]), torch.Size([3, 6]), torch.Size([3, 4]))
    """

    stackable = True

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """`x Wᵀ + b`, or `x_i W_iᵀ + b_i` for a stack of weights."""
        return F.linear(x, weight, bias) if weight.ndim == 2 else stacked_linear(x, weight, bias)


def linear_of(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A plain linear layer with copies of these tensors; what is frozen stays frozen."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, device="meta")
    linear.weight = nn.Parameter(weight.detach().clone(), requires_grad=weight.requires_grad)
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach().clone(), requires_grad=bias.requires_grad)
    return linear
