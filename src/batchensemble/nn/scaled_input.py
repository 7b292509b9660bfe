"""`x o r` for a compiled graph, which keeps one tensor of it, not two."""

from typing import Any

import torch
from torch import Tensor

TINY = 1e-15  # its square is still a normal float32 and bfloat16 number


class ScaledInput(torch.autograd.Function):
    """`x o r`, of which only the product is kept, as the operation behind it does: `grad r = sum(grad o x o r) / r`."""

    @staticmethod
    def forward(x: Tensor, r: Tensor) -> Tensor:
        """`r` broadcasts against x."""
        return x * _nonzero(r).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Keep the product."""
        ctx.save_for_backward(inputs[1], output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of x and r."""
        r, y = ctx.saved_tensors
        r = _nonzero(r)
        wide = torch.promote_types(y.dtype, torch.float32)
        axes = [axis for axis, size in enumerate(r.shape) if size == 1]
        total = (grad.to(wide) * y.to(wide)).sum(axes, keepdim=True)
        return grad * r.to(grad.dtype), (total / r.to(wide)).to(r.dtype)


def _nonzero(fast: Tensor) -> Tensor:
    """Fast weights by which one may divide."""
    return torch.where(fast == 0, TINY, fast)
