"""`x_i W_i^T + b_i` for members with weights of their own, in the form that a compiled graph does fastest."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from batchensemble.nn.tracing import is_transformed

MOST = 16  # members up to which each has a product of its own


def stacked_linear(x: Tensor, weights: Tensor, biases: Tensor | None) -> Tensor:
    """`x (members, n, in)`, `weights (members, out, in)`, `biases (members, out)` to `(members, n, out)`.

    Example:
        >>> stacked_linear(torch.ones(2, 3, 4), torch.ones(2, 5, 4), torch.zeros(2, 5)).shape
        torch.Size([2, 3, 5])
    """
    if torch.compiler.is_compiling() and len(x) <= MOST and not is_transformed():
        biases = weights.new_zeros(weights.shape[:2]) if biases is None else biases
        apply: Any = StackedLinear.apply  # torch gives it no types
        return apply(*map(_as_autocast_has_it, (x, weights, biases)))  # type: ignore[no-any-return]
    if biases is None:
        return torch.bmm(x, weights.transpose(1, 2))
    return torch.baddbmm(biases.unsqueeze(1), x, weights.transpose(1, 2))


def _as_autocast_has_it(x: Tensor) -> Tensor:
    device = x.device.type
    if not torch.is_autocast_enabled(device) or x.dtype == torch.float64:
        return x
    return x.to(torch.get_autocast_dtype(device))


class StackedLinear(torch.autograd.Function):
    """Forward one product a member, which adds its bias on the way; backward all members' in one.

    The compiler has each product write its part of the whole. Gradients of the weights come in the weights' own
    layout, so that what follows (a sum over members, r's and s's gradients) reads both in order.
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
