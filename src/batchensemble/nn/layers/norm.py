"""Norms per member: each member has its own scale, shift and running statistics."""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble.nn.init import Fast
from batchensemble.nn.integers import check_count
from batchensemble.nn.layers.member import MemberModule
from batchensemble.nn.routing.layer_input import check_features, rows_of, title
from batchensemble.nn.routing.rows import Rows
from batchensemble.nn.speed.memberwise_norm import (
    before_scale,
    compiled_members,
    memberwise_norm,
    normalised,
    scale_and_shift,
    wide_type,
)
from batchensemble.nn.tracing import can_be_read

# One batch may come several times: two views of it, real and made images, what checkpointing computes again.
MANY_SINGLES = 8

Norm = Literal["shared", "member"]  # whether a network's norms stay common to all members, or each has its own


class MemberNorm(MemberModule):
    """A torch norm whose `stacked` tensors have a row per member."""

    def __init__(self, *args: Any, members: int, **kwargs: Any) -> None:
        count = check_count("members", members)
        super().__init__(*args, **kwargs)
        self._add_members_(count)

    @classmethod
    def ensembled(cls, module: nn.Module, fast: Fast) -> Self:
        """Build the norm around a plain one; every member starts with its values, whatever r and s start with."""
        norm = cls.around(module)
        norm._add_members_(fast.members)
        return norm

    def _add_members_(self, members: int) -> None:
        self.members = members
        self.stack_(*self.stacked)


class LayerNorm(MemberNorm, nn.LayerNorm):
    """`torch.nn.LayerNorm` with `weight` and `bias` of shape `(members, *normalized_shape)`.

    Examples:
        >>> LayerNorm(4, members=2)(torch.ones(6, 3, 4)).shape
        torch.Size([6, 3, 4])
    """

    stacked = ("weight", "bias")

    def forward(self, input: Tensor) -> Tensor:
        """`(rows, ..., *normalized_shape)` in, the same out."""
        features = len(self.normalized_shape)
        rows = rows_of(self, input, features=features)
        y = F.layer_norm(input, self.normalized_shape, eps=self.eps)
        return rows.affine(y, self.weight, self.bias, at=input.ndim - features)


class RMSNorm(MemberNorm, nn.RMSNorm):
    """`torch.nn.RMSNorm` with a `weight` of shape `(members, *normalized_shape)`.

    Examples:
        >>> RMSNorm(4, members=2)(torch.ones(6, 3, 4)).shape
        torch.Size([6, 3, 4])
    """

    stacked = ("weight",)

    def forward(self, x: Tensor) -> Tensor:
        """`(rows, ..., *normalized_shape)` in, the same out."""
        features = len(self.normalized_shape)
        rows = rows_of(self, x, features=features)
        y = F.rms_norm(x, self.normalized_shape, eps=self.eps)
        return rows.affine(y, self.weight, at=x.ndim - features)


class GroupNorm(MemberNorm, nn.GroupNorm):
    """`torch.nn.GroupNorm` with `weight` and `bias` of shape `(members, channels)`.

    `(members * n, channels, ...)` in, the same out.

    Examples:
        >>> GroupNorm(2, 4, members=2)(torch.randn(6, 4, 3)).shape
        torch.Size([6, 4, 3])
    """

    stacked = ("weight", "bias")

    def forward(self, input: Tensor) -> Tensor:
        """`(rows, channels, ...)` in, the same out."""
        rows = rows_of(self, input, axis=0)
        check_features(self, input, self.num_channels, at=1)
        return rows.affine(F.group_norm(input, self.num_groups, eps=self.eps), self.weight, self.bias, at=1)


class BatchNorm(MemberNorm):
    """Base of the batch norms: every member normalises its own rows by their own statistics.

    Statistics, scale and shift are `(members, channels)`. A member without rows in the batch keeps its running
    statistics. So does a member with a single value, which is its own mean and becomes the shift. torch's own norm
    refuses that case; here the last batch of an epoch may give a member one row where the plain network has several.
    Many such batches in a row are warned of.
    """

    stacked: ClassVar[tuple[str, ...]] = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")

    num_features: int
    eps: float
    momentum: float | None
    track_running_stats: bool
    weight: Any
    bias: Any
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    singles = 0  # training calls in a row in which some member had a single value

    def forward(self, input: Tensor) -> Tensor:
        """`(rows, channels, ...)` in, the same out."""
        self._check_input_dim(input)  # type: ignore[operator]
        rows = rows_of(self, input, axis=0)
        check_features(self, input, self.num_features, at=1)
        if not self.training and self.running_mean is not None and self.running_var is not None:
            return self._evaluated(input, rows, self.running_mean, self.running_var)
        members = compiled_members(input, training=True)
        if members is not None:
            return self._compiled(*before_scale(input, members))
        return self._in_pieces(input, rows) if self._comes_in_pieces(input, rows) else self._at_once(input, rows)

    def _evaluated(self, input: Tensor, rows: Rows, mean: Tensor, var: Tensor) -> Tensor:
        if isinstance(rows.owner, int):
            weight, bias = (self._of(rows.owner, name) for name in ("weight", "bias"))
            mean, var = mean[rows.owner].clone(), var[rows.owner].clone()  # for backward: training may change them
            return F.batch_norm(input, mean, var, weight, bias, eps=self.eps)
        members = compiled_members(input, training=False)
        if members is not None:
            return normalised(*before_scale(input, members), mean, var, self.weight, self.bias, self.eps)
        return self._affine(input, rows, mean, var)

    def _compiled(self, z: Tensor, s: Tensor) -> Tensor:
        """`norm(z ∘ s_i)` over each member's rows, which come in equal blocks."""
        y, mean, var, *_ = memberwise_norm(z, s, self.weight, self.bias, self.eps, shared=False)
        self._track(mean, var, mean.new_full((len(s),), z.numel() // mean.numel()))
        return y

    def _comes_in_pieces(self, input: Tensor, rows: Rows) -> bool:
        """Whether torch's own kernel will do, one call per member: no ids, several values for each, a momentum."""
        members = rows.members if rows.owner is None else 1
        several = input.numel() > members * input.shape[1]
        return not isinstance(rows.owner, Tensor) and several and self.momentum is not None

    def _in_pieces(self, input: Tensor, rows: Rows) -> Tensor:
        if can_be_read(input):
            self._watch_singles(False)
        owners: Sequence[Any] = range(rows.members) if rows.owner is None else [rows.owner]
        blocks = input.split(len(input) // len(owners))  # the gradient of a slice would be as large as the whole input
        if not self._tracks():
            return torch.cat([self._piece(x, owner, None, None) for x, owner in zip(blocks, owners, strict=True)])
        assert self.running_mean is not None  # for the type checker, here and below
        assert self.running_var is not None
        # Copies: torch's norm saves the statistics that it updates for the backward pass, and nothing may write into
        # them until then; and under vmap it would update its own copy of a view.
        means, variances = ([stats[i].clone() for i in owners] for stats in (self.running_mean, self.running_var))
        pieces = [self._piece(*each) for each in zip(blocks, owners, means, variances, strict=True)]
        whose = slice(None) if rows.owner is None else slice(owners[0], owners[0] + 1)
        self.running_mean[whose] = torch.stack(means)
        self.running_var[whose] = torch.stack(variances)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked[whose] += 1
        return torch.cat(pieces)

    def _piece(self, x: Tensor, member: int, mean: Tensor | None, var: Tensor | None) -> Tensor:
        """Normalise one member's rows in training by torch's own norm, which updates mean and variance."""
        weight, bias = (self._of(member, name) for name in ("weight", "bias"))
        return F.batch_norm(x, mean, var, weight, bias, True, self.momentum or 0.0, self.eps)

    def _of(self, member: int, name: str) -> Tensor | None:
        """The member's own tensor, or the one that all members share."""
        tensor: Tensor | None = getattr(self, name)
        return tensor[member] if tensor is not None and name in self.stacked else tensor

    def _at_once(self, input: Tensor, rows: Rows) -> Tensor:
        """Normalise all members' rows, in whatever order they come, by sums over each member's own."""
        mean, var, count = _moments(input.to(wide_type(input.dtype)), rows)
        self._track(mean, var, count)
        if self.training and can_be_read(count):
            few = input.numel() < 2 * rows.members * input.shape[1]  # a GPU is waited for only then
            self._watch_singles(few and bool((count == 1).any()))
        return self._affine(input, rows, mean, var)

    def _affine(self, input: Tensor, rows: Rows, mean: Tensor, var: Tensor) -> Tensor:
        scale, shift = scale_and_shift(mean, var, self.weight, self.bias, self.eps)
        return rows.affine(input.to(wide_type(input.dtype)), scale, shift, at=1).to(input.dtype)

    def _watch_singles(self, has_single: bool) -> None:
        """Warn if some member has a single value, unless it is an epoch's last batch."""
        if has_single or self.singles:
            self.singles = self.singles + 1 if has_single else 0
        if self.singles == MANY_SINGLES:
            warnings.warn(
                f"{title(self)} gets a single value for some members. That is its own mean and becomes the shift, so "
                "such a member learns nothing from its row, nor do its statistics: give every member two rows or more, "
                f"{2 * self.members} in a split batch, or convert with norm='shared'",
                stacklevel=2,
            )

    def _tracks(self) -> bool:
        return self.training and self.track_running_stats and self.running_mean is not None

    @torch.no_grad()
    def _track(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        if not self._tracks():
            return
        assert self.running_mean is not None  # for the type checker, here and below
        assert self.running_var is not None
        seen = count > 1  # a single value has no variance to remember
        momentum: Tensor | float = self.momentum or 0.0
        if self.num_batches_tracked is not None:
            self.num_batches_tracked += seen
            if self.momentum is None:
                momentum = 1 / self.num_batches_tracked.clamp(min=1).to(mean.dtype)
        step = (seen.to(mean.dtype) * momentum).unsqueeze(1)
        unbiased = var * (count / (count - 1).clamp(min=1)).unsqueeze(1)
        # where, not a product with zero: a batch without any rows has no mean, and NaN * 0 is NaN
        self.running_mean += step * torch.where(seen.unsqueeze(1), mean - self.running_mean, 0)
        self.running_var += step * torch.where(seen.unsqueeze(1), unbiased - self.running_var, 0)


def _moments(x: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    """Each member's mean and variance `(members, channels)` over its own rows and positions, and their count."""
    per_row = x.flatten(2) if x.ndim > 2 else x.unsqueeze(2)  # (rows, channels, positions)
    if rows.owner is None:
        var, mean = torch.var_mean(rows.split(per_row), dim=(1, 3), correction=0)
        count = per_row.new_full((rows.members,), per_row.shape[0] // rows.members * per_row.shape[2])
        return mean, var, count
    ids = _ids(rows, len(x), x.device)
    count = per_row.new_zeros(rows.members).index_add(0, ids, per_row.new_ones(len(x))) * per_row.shape[2]
    mean = _member_mean(per_row, ids, count)
    var = _member_mean((per_row - mean[ids].unsqueeze(2)).square(), ids, count)
    return mean, var, count


def _member_mean(per_row: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    total = per_row.new_zeros(len(count), per_row.shape[1]).index_add(0, ids, per_row.sum(2))
    return total / count.clamp(min=1).unsqueeze(1)


def _ids(rows: Rows, count: int, device: torch.device) -> Tensor:
    if isinstance(rows.owner, Tensor):
        return rows.owner
    return torch.full((count,), rows.owner or 0, dtype=torch.long, device=device)


class BatchNorm1d(BatchNorm, nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` per member: `(members * n, channels)` or `(members * n, channels, length)`, the same out.

    `weight`, `bias`, `running_mean` and `running_var` are `(members, channels)`.
    """


class BatchNorm2d(BatchNorm, nn.BatchNorm2d):
    """`torch.nn.BatchNorm2d` per member: `(members * n, channels, height, width)`, the same out.

    `weight`, `bias`, `running_mean` and `running_var` are `(members, channels)`.

    Examples:
        >>> BatchNorm2d(4, members=2)(torch.randn(6, 4, 3, 3)).shape
        torch.Size([6, 4, 3, 3])
    """


class BatchNorm3d(BatchNorm, nn.BatchNorm3d):
    """`torch.nn.BatchNorm3d` per member: `(members * n, channels, depth, height, width)`, the same out.

    `weight`, `bias`, `running_mean` and `running_var` are `(members, channels)`.
    """
