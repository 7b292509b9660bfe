"""Scaling before a norm in a compiled graph: `x ∘ r_i` keeps one tensor for the backward pass instead of two."""

from typing import Any

import torch
from torch import Tensor

from batchensemble.nn.rank_one import RankOne
from batchensemble.nn.routing.route import current
from batchensemble.nn.routing.rows import Rows
from batchensemble.nn.speed.hand_over import remember_scaling
from batchensemble.nn.speed.memberwise_norm import wide_type
from batchensemble.nn.tracing import is_transformed


class ScaledInput(torch.autograd.Function):
    """`x ∘ r_i`, which keeps only the product, as the operation after it does anyway.

    grad r_i = sum(grad ∘ (x ∘ r_i)) / r_i
    """

    @staticmethod
    def forward(x: Tensor, r: Tensor) -> Tensor:
        """`x (members * n, in, ...)` in equal blocks, `r (members, in)`."""
        return Rows(len(r), None).affine(x, _without_zeros(r), at=1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Keep the product."""
        ctx.save_for_backward(inputs[1], output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of x and r."""
        r, y = ctx.saved_tensors
        rows, r, wide = Rows(len(r), None), _without_zeros(r), wide_type(y.dtype)
        (total,) = rows.sums(grad.to(wide) * y.to(wide))
        return rows.affine(grad, r, at=1), (total / r.to(wide)).to(r.dtype)


def _without_zeros(r: Tensor) -> Tensor:
    """r, which is divided by, with tiny numbers for zeros; their squares are still normal in float32 and bfloat16."""
    return torch.where(r == 0, 1e-15, r)  # a literal: a global is an input of graphs with dynamic=True


def may_precede_a_norm(op: RankOne, x: Tensor, rows: Rows) -> bool:
    """Whether a norm behind this convolution, in a compiled graph, could take its s over."""
    # float16 has no number as small as `_without_zeros` needs, and `ScaledInput` does not conjugate
    fits = x.dtype != torch.float16 and not x.is_complex()
    return fits and rows.owner is None and op.rank == 1 and not is_transformed()


def scale_before_a_norm(op: RankOne, x: Tensor, rows: Rows, options: dict[str, Any]) -> Tensor:
    """`((x ∘ r_i) Wᵀ) ∘ s_i + b_i`; r's gradient needs no pass of its own, and a norm may take s over.

    See `memberwise_norm`.
    """
    at = op.features_at % x.ndim
    scaled: Any = ScaledInput.apply  # torch gives it no types
    trained = torch.is_grad_enabled() and op.r.requires_grad
    z = op.product(scaled(x, op.r) if trained else rows.affine(x, op.r, at=at), op.weight, **options)
    y = rows.affine(z, op.s, op.bias, at=at)
    if op.bias is None and current() is not None:
        remember_scaling(y, z, op.s if torch.is_grad_enabled() else op.s.detach())
    return y
