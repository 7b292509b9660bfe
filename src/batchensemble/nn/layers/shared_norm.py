"""A batch norm that all members share: torch's own, and in compiled graphs one that sums by member."""

from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.nn.layers.converted import Converted, Pick
from batchensemble.nn.routing.layer_input import check_features
from batchensemble.nn.speed.memberwise_norm import before_scale, compiled_members, memberwise_norm, normalised


class SharedBatchNorm(Converted):
    """A plain batch norm inside an ensemble: the same tensors, the same function."""

    def forward(self, input: Tensor) -> Tensor:
        """`(rows, channels, ...)` in, the same out."""
        me: Any = self
        members = compiled_members(input, self.training)
        if members is None or not (self.training or me.running_mean is not None):
            return super().forward(input)  # type: ignore[no-any-return]
        me._check_input_dim(input)
        check_features(self, input, me.num_features, at=1)
        z, s = before_scale(input, members)
        if not self.training:
            return normalised(z, s, me.running_mean, me.running_var, me.weight, me.bias, me.eps)
        y, mean, var, *_ = memberwise_norm(z, s, me.weight, me.bias, me.eps, shared=True)
        if me.running_mean is not None and me.track_running_stats:
            _track(me, mean, var, input.numel() // input.shape[1])
        return y

    def plain(self, pick: Pick) -> nn.Module:
        """The norm itself."""
        return self.plain_twin()


@torch.no_grad()
def _track(norm: Any, mean: Tensor, var: Tensor, count: int) -> None:
    """Update the running statistics as torch does."""
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
