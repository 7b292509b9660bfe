"""Equation 5 of the paper, in its exact forms, and the choice between them.

    scale:  y = ((x ∘ r_i) Wᵀ) ∘ s_i      touches activations: best for few rows per member
    fold:   y = x (W ∘ s_i r_iᵀ)ᵀ         touches weights: best for many rows per member

W is `(out, in)`, as in torch. All forms are the same function of x, W, r and s; the tests hold them to the same values
and gradients.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from batchensemble.nn.rank_one import RankOne
from batchensemble.nn.routing.rows import Rows
from batchensemble.nn.speed.folded import folded_weights
from batchensemble.nn.speed.scaled_input import may_precede_a_norm, scale_before_a_norm
from batchensemble.nn.tracing import is_exporting

Plan = Literal["scale", "scale before a norm", "fold", "folded already"]

FOLD_ABOVE = 4  # measured: see benchmarks/NOTES.md


def equation_5(op: RankOne, x: Tensor, rows: Rows, plan: Plan | None = None, **options: Any) -> Tensor:
    """Send every row through its own member's weight and bias, `x_n -> x_n (W ∘ s_i r_iᵀ)ᵀ + b_i`, in one pass.

    Args:
        op: the layer: its W, r, s, b and its linear operation.
        x: the batch, members' rows folded into it.
        rows: which member each row belongs to.
        plan: which form; by default chosen by shape.
        **options: what else the operation takes (a transposed convolution's output size).
    """
    return _PLANS[plan or choose_plan(op, x, rows)](op, x, rows, options)


def _scale(op: RankOne, x: Tensor, rows: Rows, options: dict[str, Any]) -> Tensor:
    """`((x ∘ r_i) Wᵀ) ∘ s_i + b_i`, summed over the rank."""
    at = op.features_at % x.ndim

    def term(r: Tensor, s: Tensor, b: Tensor | None) -> Tensor:
        scaled = rows.affine(x, r, at=at)  # x ∘ r_i
        y = op.product(scaled, op.weight, **options)  # (x ∘ r_i) Wᵀ
        return rows.affine(y, s, b, at=at)  # ((x ∘ r_i) Wᵀ) ∘ s_i + b_i

    if op.rank == 1:
        return term(op.r, op.s, op.bias)
    r, s = op.r.unbind(1), op.s.unbind(1)
    further = [term(*component, None) for component in zip(r[1:], s[1:], strict=True)]
    return torch.stack([term(r[0], s[0], op.bias), *further]).sum(0)


def _fold(op: RankOne, x: Tensor, rows: Rows, options: dict[str, Any]) -> Tensor:
    """`x (W ∘ s_i r_iᵀ)ᵀ + b_i`: one product if all rows have one owner, else a product for every member's rows."""
    bias = None if op.bias is None else op.bias.to(x.dtype)
    if rows.owner is not None:
        own = None if bias is None else bias[rows.owner]
        return op.product(x, op.fold(op.r[rows.owner], op.s[rows.owner]), own, **options)
    blocks = rows.split(x).movedim(rows.axis, 0)
    return rows.join(op.product(blocks, op.fold(op.r, op.s), bias, **options).movedim(0, rows.axis))


def _folded_already(op: RankOne, x: Tensor, rows: Rows, options: dict[str, Any]) -> Tensor:
    """As `_fold`, with weights that were folded for many passes."""
    folded = folded_weights(op)
    assert folded is not None  # for the type checker
    return folded(x)


_PLANS: dict[Plan, Callable[[RankOne, Tensor, Rows, dict[str, Any]], Tensor]] = {
    "scale": _scale,
    "scale before a norm": scale_before_a_norm,
    "fold": _fold,
    "folded already": _folded_already,
}


def choose_plan(op: RankOne, x: Tensor, rows: Rows) -> Plan:
    """Choose the cheapest form for these shapes; for any one member, it never depends on how many others there are.

    For each member, scaling reads and writes `positions * (in + out)` activations, and folding one weight; folding
    wins once there are several times more of the former. Rank k multiplies the products of `scale`, never those of
    `fold`. A weight per row is never built.
    """
    if rows.owner is None and rows.axis == 0 and folded_weights(op) is not None:
        return "folded already"
    if is_exporting() or isinstance(rows.owner, Tensor):  # a choice by size would fix the batch size
        return "scale"
    if torch.compiler.is_compiling() and op.features_at == 1:  # the compiler fuses scalings with what is around
        return "scale before a norm" if may_precede_a_norm(op, x, rows) else "scale"
    inputs, outputs = x.shape[op.features_at], op.s.shape[-1]
    positions = x.numel() // max(1, inputs) // (rows.members if rows.owner is None else 1)
    many = positions * (inputs + outputs) * op.rank > FOLD_ABOVE * op.weight.numel()
    return "fold" if many and (rows.owner is not None or op.stackable) else "scale"
