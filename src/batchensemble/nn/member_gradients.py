"""The backward pass of a scaled convolution without a single reduction over activations.

With G_i the gradient of W that comes from member i's rows alone,

    grad W   = sum_i G_i
    grad r_i = (sum over outputs and kernel of W o G_i) / r_i
    grad s_i = (sum over inputs and kernel of W o G_i) / s_i

so that r and s need no pass over activations, and the input is all that is kept of them. G_i scales with r_i and s_i,
so the divisions are as accurate as G_i itself; a fast weight of exactly zero is taken as one too small to matter.
"""

from typing import Any

import torch
from torch import Tensor

from batchensemble.nn.rows import Rows

TINY = 1e-15  # its square is still a normal float32 and bfloat16 number


class ScaledConvolution(torch.autograd.Function):
    """`((x o r_i) * W) o s_i` for equal blocks of rows; `x (members * n, in, ...)`, `r (members, in)`."""

    generate_vmap_rule = True  # per-sample gradients, torch.func

    @staticmethod
    def forward(
        x: Tensor,
        weight: Tensor,
        r: Tensor,
        s: Tensor,
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        groups: int,
    ) -> Tensor:
        """One convolution for all members."""
        rows = Rows(len(r), None)
        y = _convolution(rows.affine(x, nonzero(r), at=1), weight, stride, padding, dilation, groups)
        # row by row, so that y is a tensor of its own: torch forbids changing a view in place (ReLU, +=) behind this
        ids = torch.arange(len(s), device=s.device).unsqueeze(1).expand(-1, len(y) // len(s)).reshape(-1)
        return Rows(len(s), ids).affine(y, nonzero(s), at=1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep the input and the weights."""
        x, weight, r, s, *ctx.options = inputs
        ctx.save_for_backward(x, weight, r, s)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of x, W, r, s."""
        x, weight, r, s = ctx.saved_tensors
        rows, r, s = Rows(len(r), None), nonzero(r), nonzero(s)
        scaled = rows.affine(x, r, at=1)
        grad = rows.affine(grad, s, at=1)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = rows.affine(_backward(grad, scaled, weight, ctx.options, (True, False))[0], r, at=1)
        parts = zip(rows.split(grad).unbind(0), rows.split(scaled).unbind(0), strict=True)
        own = torch.stack([_backward(g, v, weight, ctx.options, (False, True))[1] for g, v in parts])
        grad_r, grad_s = _fast_gradients(own, weight, r, s, ctx.options[3])
        return grad_x, own.sum(0), grad_r, grad_s, None, None, None, None


def _fast_gradients(own: Tensor, weight: Tensor, r: Tensor, s: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """`own (members, out, in / groups, kernel ...)` -> gradients of r and s."""
    wide = torch.promote_types(own.dtype, torch.float32)
    shares = (own.to(wide) * weight.to(wide)).flatten(3).sum(3)  # (members, out, in / groups)
    by_input = shares.unflatten(1, (groups, -1)).sum(2).flatten(1)  # (members, in)
    return (by_input / r.to(wide)).to(r.dtype), (shares.sum(2) / s.to(wide)).to(s.dtype)


class ScaledInput(torch.autograd.Function):
    """`x o r`, of which only the product is kept, as the operation behind it does: `grad r = sum(grad o x o r) / r`."""

    @staticmethod
    def forward(x: Tensor, r: Tensor) -> Tensor:
        """`r` broadcasts against x."""
        return x * nonzero(r).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Keep the product."""
        ctx.save_for_backward(inputs[1], output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of x and r."""
        r, y = ctx.saved_tensors
        r = nonzero(r)
        wide = torch.promote_types(y.dtype, torch.float32)
        axes = [axis for axis, size in enumerate(r.shape) if size == 1]
        total = (grad.to(wide) * y.to(wide)).sum(axes, keepdim=True)
        return grad * r.to(grad.dtype), (total / r.to(wide)).to(r.dtype)


def nonzero(fast: Tensor) -> Tensor:
    """Fast weights by which one may divide."""
    return torch.where(fast == 0, TINY, fast)


def _convolution(
    x: Tensor,
    weight: Tensor,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Tensor:
    still = (0,) * len(stride)
    y: Tensor = torch.ops.aten.convolution.default(x, weight, None, stride, padding, dilation, False, still, groups)
    return y


def _backward(
    grad: Tensor, x: Tensor, weight: Tensor, options: list[Any], wanted: tuple[bool, bool]
) -> tuple[Tensor, Tensor]:
    stride, padding, dilation, groups = options
    grads: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward.default(
        grad, x, weight, None, stride, padding, dilation, False, (0,) * len(stride), groups, [*wanted, False]
    )
    return grads[:2]
