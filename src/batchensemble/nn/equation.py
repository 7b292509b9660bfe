"""Equation 5 of the paper, in its two exact forms, and the choice between them.

    scale:  y = ((x o r_i) W) o s_i        touches activations: best for few rows per member
    fold:   y = x (W o s_i r_i^T)          touches weights: best for many rows per member

Both are the same function of x, W, r and s; the tests hold them to the same values and gradients.
"""

from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from batchensemble.nn.hand_over import made_of
from batchensemble.nn.route import current
from batchensemble.nn.rows import Rows
from batchensemble.nn.scaled_input import ScaledInput
from batchensemble.nn.tracing import is_compiled, is_exporting

Plan = Literal["scale", "fold"]


class RankOneOperation(Protocol):
    """A linear operation with a shared weight and rank-one fast weights."""

    weight: Tensor
    r: Tensor  # (members, in), or (members, rank, in)
    s: Tensor  # (members, out), or (members, rank, out)
    bias: Any  # (members, out), or None
    features_at: int  # the feature axis: -1, or 1 for convolutions
    stackable: bool  # `product` takes a stack of weights, one per member

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """`x W + b`; with a stack of weights and biases `x_i W_i + b_i`."""
        ...

    def fold(self, r: Tensor, s: Tensor) -> Tensor:
        """`W o s r^T`, summed over the rank, in the layout of `weight`; leading axes of r and s stay in front."""
        ...


def equation_5(op: RankOneOperation, x: Tensor, rows: Rows, plan: Plan | None = None, **options: Any) -> Tensor:
    """Send every row through its own member's weight and bias, `x_n -> x_n (W o s_i r_i^T) + b_i`, in one pass.

    Args:
        op: the layer: its W, r, s, b and its linear operation.
        x: the batch, members' rows folded into it.
        rows: which member each row belongs to.
        plan: "scale" or "fold"; by default chosen by shape.
        **options: what else the operation takes (a transposed convolution's output size).
    """
    plan = plan or choose_plan(op, x, rows)
    if plan == "fold":
        return _fold(op, x, rows, options)
    scale = _scale_before_a_norm if _joins_a_norm(op, x, rows) else _scale
    return scale(op, x, rows, options)


def _scale(op: RankOneOperation, x: Tensor, rows: Rows, options: dict[str, Any]) -> Tensor:
    """`((x o r_i) W) o s_i + b_i`, summed over the rank."""
    at = op.features_at % x.ndim
    pairs = zip(_components(op.r), _components(op.s), strict=True)
    terms = [
        rows.affine(op.product(rows.affine(x, r, at=at), op.weight, **options), s, None if term else op.bias, at=at)
        for term, (r, s) in enumerate(pairs)  # only the first adds the bias
    ]
    return terms[0] if len(terms) == 1 else torch.stack(terms).sum(0)


def _fold(op: RankOneOperation, x: Tensor, rows: Rows, options: dict[str, Any]) -> Tensor:
    """`x (W o s_i r_i^T) + b_i`: one product if all rows have one owner, else a product for every member's rows."""
    bias = None if op.bias is None else op.bias.to(x.dtype)
    if rows.owner is not None:
        own = None if bias is None else bias[rows.owner]
        return op.product(x, op.fold(op.r[rows.owner], op.s[rows.owner]), own, **options)
    blocks = rows.split(x).movedim(rows.axis, 0)
    return rows.join(op.product(blocks, op.fold(op.r, op.s), bias, **options).movedim(0, rows.axis))


def _components(fast: Tensor) -> tuple[Tensor, ...]:
    return fast.unbind(1) if fast.ndim == 3 else (fast,)


def choose_plan(op: RankOneOperation, x: Tensor, rows: Rows) -> Plan:
    """Choose the cheaper form for these shapes; for any one member, it never depends on how many others there are.

    For each member, scaling reads and writes `positions * (in + out)` activations, and folding one weight; folding
    wins once there are several times more of the former. Rank k multiplies the products of `scale`, never those of
    `fold`. A weight per row is never built.
    """
    if is_exporting() or isinstance(rows.owner, Tensor):  # a choice by size would fix the batch size
        return "scale"
    if torch.compiler.is_compiling() and op.features_at == 1:  # the compiler fuses scalings with what is around
        return "scale"
    inputs, outputs = op.r.shape[-1], op.s.shape[-1]
    rank = op.r.shape[1] if op.r.ndim == 3 else 1
    positions = x.numel() // max(1, inputs) // (rows.members if rows.owner is None else 1)
    many = positions * (inputs + outputs) * rank > FOLD_ABOVE * op.weight.numel()
    return "fold" if many and (rows.owner is not None or op.stackable) else "scale"


FOLD_ABOVE = 4  # measured: see benchmarks/NOTES.md


def _joins_a_norm(op: RankOneOperation, x: Tensor, rows: Rows) -> bool:
    """Whether this is a convolution in a compiled graph, where the compiler fuses passes over activations."""
    fits = op.features_at == 1 and rows.owner is None and op.r.ndim == 2
    # float16 has no number as small as `TINY`, and `ScaledInput` does not conjugate
    return fits and x.dtype != torch.float16 and not x.is_complex() and is_compiled()


def _scale_before_a_norm(op: RankOneOperation, x: Tensor, rows: Rows, options: dict[str, Any]) -> Tensor:
    """As `_scale`, but r's gradient needs no pass of its own, and a norm may take s over (see `memberwise_norm`)."""
    at = op.features_at % x.ndim
    scaled: Any = ScaledInput.apply  # torch gives it no types
    trained = torch.is_grad_enabled() and op.r.requires_grad
    z = op.product(scaled(x, op.r) if trained else rows.affine(x, op.r, at=at), op.weight, **options)
    y = rows.affine(z, op.s, op.bias, at=at)
    if op.bias is None and current() is not None:
        made_of(y, z, op.s if torch.is_grad_enabled() else op.s.detach())
    return y
