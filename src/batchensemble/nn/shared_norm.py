"""A batch norm that all members share, compiled: it sums by member, so that r and s cost no passes.

Statistics over the batch are made of the members' statistics; values and gradients are those of torch's batch norm.
In evaluation it is one scale and one shift, s included. What is won in training:

    grad s_i  follows from sums that the norm makes anyway, where the norm reads `y = z o s_i` of the layer before it
    grad r_i  is a sum over the same rows as the norm's own, so that the compiler makes them in one kernel
"""

from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.nn.member import Converted, Pick
from batchensemble.nn.route import current, taken_apart
from batchensemble.nn.rows import Rows
from batchensemble.nn.tracing import is_compiled

SETTLE_FROM = 2**24  # elements from which a kernel that settles an evaluated norm's vectors is worth its launch


class SharedBatchNorm(Converted):
    """A plain batch norm inside an ensemble: the same tensors, the same function."""

    def forward(self, input: Tensor) -> Tensor:
        """`(rows, channels, ...)`, the same out."""
        members = self._members(input)
        if members is None:
            return super().forward(input)  # type: ignore[no-any-return]
        me: Any = self
        me._check_input_dim(input)
        z, s = taken_apart(input)
        s = input.new_ones(members, input.shape[1], dtype=_wide(input.dtype)) if s is None else s
        if not self.training:
            return _normalised(z, s, me.running_mean, me.running_var, me.weight, me.bias, me.eps)
        y, mean, var, *_ = MemberwiseNorm.apply(z, s, me.weight, me.bias, me.eps)  # type: ignore[no-untyped-call]
        if me.running_mean is not None and me.track_running_stats:
            _track(me, mean, var, input.numel() // input.shape[1])
        return y  # type: ignore[no-any-return]

    def _members(self, x: Tensor) -> int | None:
        """How many equal blocks the rows come in; `None` where torch's own norm does as well."""
        route = current()
        if route is None or not is_compiled():
            return None
        blocks = route.owner is None and route.fan_out is None and route.axis == 0 and route.members > 1
        if not blocks or len(x) % route.members or x.numel() <= x.shape[1]:
            return None
        me: Any = self
        known = me.running_mean is not None and x.numel() >= SETTLE_FROM
        return route.members if self.training or known else None

    def plain(self, pick: Pick) -> nn.Module:
        """The norm itself."""
        return self.plain_twin()


class MemberwiseNorm(torch.autograd.Function):
    """`norm(x o s_i)` over all rows, `x (members * n, channels, ...)`, `s (members, channels)`.

    Also returns the batch's mean and (biased) variance, without gradients. Whatever has a number per channel is
    settled first, so that passes over x read two or three vectors and the compiler joins them to their neighbours.
    """

    @staticmethod
    def forward(x: Tensor, s: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, ...]:
        """`y`, shaped as x, mean and variance of `x o s_i`, and each member's own of x."""
        rows = Rows(len(s), None)
        blocks = rows.split(x.to(_wide(x.dtype)))
        own_var, own_mean = torch.var_mean(blocks, (1, *range(3, blocks.ndim)), correction=0)  # (members, channels)
        means = own_mean * s
        apart = means - means[:1]  # by which both moments follow from the members' at once, without cancellation
        mean = means[0] + apart.mean(0)
        var = (own_var * s.square() + apart.square()).mean(0) - apart.mean(0).square()
        return _normalised(x, s, mean, var, weight, bias, eps), mean, var, own_mean, own_var

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep the input and the statistics."""
        x, s, weight, _, ctx.eps = inputs
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
        offset = (own_mean * s - mean) * inverse  # of each member's mean among the normalised values
        steep = inverse * s  # normalised = steep * centred + offset
        grad_bias, grad_weight = sums.sum(0), (steep * with_centred + offset * sums).sum(0)
        level, slope = grad_bias / (each * len(s)), grad_weight / (each * len(s))
        outer = _times(inverse, weight)
        of_mean = own_mean * (sums - each * (level + slope * offset))
        grad_s = outer * (with_centred - each * slope * steep * own_var + of_mean)
        # the gradient of x o s is outer * (grad - level - slope * normalised)
        of_grad, of_x = _settled(outer * s), _settled(-slope * steep * outer * s)
        constant = _settled((slope * (steep * own_mean - offset) - level) * outer * s)
        grad_x = rows.affine(wide, of_grad, constant, at=1) + rows.affine(x.to(mean.dtype), of_x, at=1)
        of_weight = None if weight is None else grad_weight.to(weight.dtype)
        of_bias = grad_bias if ctx.needs_input_grad[3] else None
        return grad_x.to(x.dtype), grad_s.to(s.dtype), of_weight, of_bias, None


def _normalised(
    x: Tensor, s: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """`x o s_i` less `mean`, over the root of `var`, times `weight`, plus `bias`: one pass over x."""
    wide = _wide(x.dtype)
    scale = _times(torch.rsqrt(var.to(wide) + eps), weight)
    scale, shift = _settled(scale), _settled(-mean * scale if bias is None else bias - mean * scale)
    along = (1, -1, *[1] * (x.ndim - 2))
    y = Rows(len(s), None).affine(x.to(wide), s, at=1) * scale.view(along) + shift.view(along)
    # a Function that returns what `to` leaves alone has no gradients in a graph of torch 2.11
    return y if y.dtype == x.dtype else y.to(x.dtype)


def _settled(values: Tensor) -> Tensor:
    """The same values; a compiled graph has them in memory instead of making them again for every element."""
    # To ask for their strides in a backward pass would cost all gradients their channels_last.
    strides = (values.shape[1], 1) if values.ndim == 2 else (1,)
    return torch.as_strided(values.contiguous(), values.shape, strides)


def _times(values: Tensor, factor: Tensor | None) -> Tensor:
    return values if factor is None else values * factor


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


@torch.no_grad()
def _track(norm: Any, mean: Tensor, var: Tensor, count: int) -> None:
    """Running statistics as torch keeps them."""
    step = norm.momentum or 0.0
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
        step = norm.momentum if norm.momentum is not None else 1 / norm.num_batches_tracked.to(mean.dtype)
    norm.running_mean.add_(step * (mean - norm.running_mean))
    norm.running_var.add_(step * (var * (count / (count - 1)) - norm.running_var))


class BatchNorm1d(SharedBatchNorm, nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` for all members."""


class BatchNorm2d(SharedBatchNorm, nn.BatchNorm2d):
    """`torch.nn.BatchNorm2d` for all members."""


class BatchNorm3d(SharedBatchNorm, nn.BatchNorm3d):
    """`torch.nn.BatchNorm3d` for all members."""
