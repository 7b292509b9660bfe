"""The function behind compiled batch norms, shared and per member: it sums by member, so r and s cost no extra passes.

Statistics over the batch are built from the members' statistics; values and gradients are those of torch's batch norm.
In evaluation it is one scale and one shift, which include s. What is gained in training:

    grad s_i  follows from sums that the norm needs anyway, if it reads the `y = z ∘ s_i` of the layer before it
    grad r_i  is a sum over the same rows as the norm's own sums, so the compiler computes them in one kernel
"""

from typing import Any

import torch
from torch import Tensor

from batchensemble.nn.routing.route import current
from batchensemble.nn.routing.rows import Rows
from batchensemble.nn.speed.hand_over import take_scaling
from batchensemble.nn.tracing import is_compiled

SETTLE_FROM = 2**24  # from so many elements on, a kernel that precomputes an evaluated norm's vectors pays for itself


def compiled_members(x: Tensor, training: bool) -> int | None:
    """How many equal blocks the rows come in; `None` if torch's own kernels or plain arithmetic do as well."""
    route = current()
    if route is None or not is_compiled():
        return None
    blocks = route.owner is None and route.fan_out is None and route.axis == 0 and route.members > 1
    several = x.numel() > route.members * x.shape[1]  # values per member and channel
    if not blocks or not several or len(x) % route.members:
        return None
    return route.members if training or x.numel() >= SETTLE_FROM else None


def before_scale(x: Tensor, members: int) -> tuple[Tensor, Tensor]:
    """`z, s` with `x = z ∘ s_i`: from the layer before, if it made x that way; otherwise x itself and ones."""
    z, s = take_scaling(x)
    return z, (x.new_ones(members, x.shape[1], dtype=wide_type(x.dtype)) if s is None else s)


class MemberwiseNorm(torch.autograd.Function):
    """`norm(x ∘ s_i)`, `x (members * n, channels, ...)`, `s (members, channels)`.

    Over all rows if `shared`, otherwise over each member's own. Also returns mean and (biased) variance, `(channels)`
    or `(members, channels)`, without gradients; scale and shift may have either shape. Whatever has one number per
    channel is computed first, so that passes over x read two or three vectors and the compiler fuses them with their
    neighbours.
    """

    @staticmethod
    def forward(
        x: Tensor, s: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, shared: bool
    ) -> tuple[Tensor, ...]:
        """`y` in the shape of x, the mean and variance of `x ∘ s_i`, and each member's own mean and variance of x."""
        blocks = Rows(len(s), None).split(x.to(wide_type(x.dtype)))
        own_var, own_mean = torch.var_mean(blocks, (1, *range(3, blocks.ndim)), correction=0)  # (members, channels)
        mean, var = own_mean * s, own_var * s.square()
        if shared:
            mean, var = _pooled(mean, var)
        return normalised(x, s, mean, var, weight, bias, eps), mean, var, own_mean, own_var

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep the input and the statistics."""
        x, s, weight, bias, ctx.eps, ctx.shared = inputs
        ctx.bias_shape = None if bias is None else bias.shape
        ctx.save_for_backward(x, s, weight, *output[1:])
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        """Gradients of x, s, weight and bias, all from two sums over each member's rows."""
        x, s, weight, mean, var, own_mean, own_var = ctx.saved_tensors
        rows, wide = Rows(len(s), None), grad.to(mean.dtype)
        centred = rows.affine(x.to(mean.dtype), shift=-own_mean, at=1)
        sums, with_centred = rows.sums(wide, wide * centred)  # (members, channels)
        each, inverse = grad.numel() // own_mean.numel(), torch.rsqrt(var + ctx.eps)
        offset = (own_mean * s - mean) * inverse  # where each member's mean is among the normalised values
        steep = inverse * s  # normalised = steep * centred + offset
        grad_bias, grad_weight = sums, steep * with_centred + offset * sums
        if ctx.shared:
            grad_bias, grad_weight = grad_bias.sum(0), grad_weight.sum(0)
        count = each * len(s) if ctx.shared else each
        level, slope = grad_bias / count, grad_weight / count
        outer = _times(inverse, weight)
        of_mean = own_mean * (sums - each * (level + slope * offset))
        grad_s = outer * (with_centred - each * slope * steep * own_var + of_mean)
        # the gradient of x ∘ s is outer * (grad - level - slope * normalised)
        of_grad, of_x = _settled(outer * s), _settled(-slope * steep * outer * s)
        constant = _settled((slope * (steep * own_mean - offset) - level) * outer * s)
        grad_x = rows.affine(wide, of_grad, constant, at=1) + rows.affine(x.to(mean.dtype), of_x, at=1)
        of_weight = None if weight is None else grad_weight.sum_to_size(weight.shape)
        of_bias = grad_bias.sum_to_size(ctx.bias_shape) if ctx.needs_input_grad[3] else None
        return grad_x.to(x.dtype), grad_s, of_weight, of_bias, None, None


def memberwise_norm(
    z: Tensor, s: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, *, shared: bool
) -> tuple[Tensor, ...]:
    """What `MemberwiseNorm` gives, in a graph."""
    # A product, and so a number of the graph's own: with dynamic=True a layer's number is an input of the graph, which
    # torch 2.13 cannot hand to a Function for a second time, where a network calls its norm twice.
    made: tuple[Tensor, ...] = MemberwiseNorm.apply(z, s, weight, bias, eps * 1.0, shared)  # type: ignore[no-untyped-call]
    return made


def normalised(
    x: Tensor, s: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """`(x ∘ s_i - mean) / sqrt(var + eps) * weight + bias`, in one pass over x.

    Each of these four may be `(channels)`, for all members, or `(members, channels)`.
    """
    wide, rows = wide_type(x.dtype), Rows(len(s), None)
    scale, shift = scale_and_shift(mean, var, weight, bias, eps)
    if scale.ndim == 2:
        y = rows.affine(x.to(wide), _settled(s * scale), _settled(shift), at=1)
        y = y if x.ndim > 2 else y.clone()  # joined rows are a view, which no ReLU could write into
    else:
        along = (1, -1, *[1] * (x.ndim - 2))
        y = rows.affine(x.to(wide), s, at=1) * _settled(scale).view(along) + _settled(shift).view(along)
    # in a graph of torch 2.11, a Function has no gradients if it returns the result of a `to` that changed nothing
    return y if y.dtype == x.dtype else y.to(x.dtype)


def scale_and_shift(
    mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    """The scale and shift with which a norm is `x * scale + shift`, computed at least in float32."""
    inverse = torch.rsqrt(var.to(wide_type(var.dtype)) + eps)  # so all that follows from it is wide, too
    # `mean * scale`, in the order that Triton 3.6 can compile beside sums over few rows
    level = _times(mean * inverse, weight)
    return _times(inverse, weight), (-level if bias is None else bias - level)


def _pooled(means: Tensor, variances: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance over the rows of all members, which have equally many."""
    apart = means - means[:1]  # from which both moments follow at once, without cancellation
    return means[0] + apart.mean(0), (variances + apart.square()).mean(0) - apart.mean(0).square()


def _settled(values: Tensor) -> Tensor:
    """The same values; a compiled graph stores them instead of recomputing them for every element."""
    # Asking for their strides in a backward pass would cost all gradients their channels_last.
    strides = (values.shape[1], 1) if values.ndim == 2 else (1,)
    return torch.as_strided(values.contiguous(), values.shape, strides)


def _times(values: Tensor, factor: Tensor | None) -> Tensor:
    return values if factor is None else values * factor


def wide_type(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which sums are computed, as torch's kernels do internally: at least float32."""
    return torch.promote_types(dtype, torch.float32)
