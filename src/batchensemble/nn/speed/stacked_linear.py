"""`x_i W_iᵀ + b_i` for members with weights of their own, in the form that is fastest in a compiled graph."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from batchensemble.nn.tracing import is_compiled

MOST = 16  # up to so many members, each has a product of its own


def stacked_linear(x: Tensor, weights: Tensor, biases: Tensor | None) -> Tensor:
    """`x (members, ..., in)`, `weights (members, out, in)`, `biases (members, out)` to `(members, ..., out)`.

    Examples:
        >>> stacked_linear(torch.ones(2, 3, 4), torch.ones(2, 5, 4), torch.zeros(2, 5)).shape
        torch.Size([2, 3, 5])
    """
    y: Tensor
    rows = x.flatten(1, -2)
    if is_compiled() and len(x) <= MOST:
        biases = weights.new_zeros(weights.shape[:2]) if biases is None else biases
        y = StackedLinear.apply(*map(as_autocast_has_it, (rows, weights, biases)))  # type: ignore[no-untyped-call]
    elif biases is None:
        y = torch.bmm(rows, weights.transpose(1, 2))
    else:
        y = torch.baddbmm(biases.unsqueeze(1), rows, weights.transpose(1, 2))
    return y.unflatten(1, x.shape[1:-1])  # type: ignore[no-any-return]


def as_autocast_has_it(x: Tensor) -> Tensor:
    """Cast a tensor to the dtype that autocast, if enabled, would give an operand of a product."""
    device = x.device.type
    if not torch.is_autocast_enabled(device) or x.dtype == torch.float64:
        return x
    return x.to(torch.get_autocast_dtype(device))


class StackedLinear(torch.autograd.Function):
    """Forward, one product per member, which also adds its bias; backward, one product for all members.

    The compiler has each product write its part of the whole. The weights' gradients have the weights' own layout,
    so that what follows (a sum over members, the gradients of r and s) reads both in order.
    """

    @staticmethod
    def forward(x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
        """See `stacked_linear`."""
        parts = zip(x.unbind(), weights.unbind(), biases.unbind(), strict=True)
        return torch.stack([F.linear(*part) for part in parts])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        """Keep inputs and weights."""
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of x, the weights and the biases."""
        x, weights = ctx.saved_tensors
        return torch.bmm(grad, weights), torch.bmm(grad.transpose(1, 2), x), grad.sum(1)
