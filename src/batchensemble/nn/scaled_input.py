"""`x o r` for a compiled graph, which keeps one tensor for the backward pass instead of two."""

from typing import Any

import torch
from torch import Tensor

from batchensemble.nn.rows import Rows

TINY = 1e-15  # replaces zeros in r, which are divided by; its square is still a normal float32 and bfloat16 number


class ScaledInput(torch.autograd.Function):
    """`x o r_i`, which keeps only the product, as the operation after it does anyway.

    grad r_i = sum(grad o (x o r_i)) / r_i
    """

    @staticmethod
    def forward(x: Tensor, r: Tensor) -> Tensor:
        """`x (members * n, in, ...)` in equal blocks, `r (members, in)`."""
        return Rows(len(r), None).affine(x, r + (r == 0) * TINY, at=1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Keep the product."""
        ctx.save_for_backward(inputs[1], output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of x and r."""
        r, y = ctx.saved_tensors
        rows, r = Rows(len(r), None), torch.where(r == 0, TINY, r)
        wide = torch.promote_types(y.dtype, torch.float32)
        (total,) = rows.sums(grad.to(wide) * y.to(wide))
        return rows.affine(grad, r, at=1), (total / r.to(wide)).to(r.dtype)
