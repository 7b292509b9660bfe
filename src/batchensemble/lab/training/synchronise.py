"""Batch norm over the rows of all processes, so that several processes train as one."""

from typing import Any, cast

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble.nn.layers.member import member_modules


def synchronised_(model: nn.Module, device: torch.device) -> nn.Module:
    """Make the model's batch norms use the rows of all processes; names and values do not change.

    Raises:
        ValueError: the model has norms per member, whose rows cannot be counted here.
    """
    own = [name for name, module in member_modules(model) if hasattr(module, "running_mean")]
    if own:
        raise ValueError(f"norm='member' trains on one device; {own[0]} has statistics per member")
    if device.type == "cuda":
        return cast(nn.Module, nn.SyncBatchNorm.convert_sync_batchnorm(model))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):  # isinstance, since an ensemble's norms are subclasses
            module.__class__ = _SyncedOnCPU
    return model


def average_buffers_(model: nn.Module) -> None:
    """Replace the statistics of each process by the mean over all, since each saw different members."""
    for buffer in model.buffers():
        if buffer.is_floating_point():
            dist.all_reduce(buffer)
            buffer /= dist.get_world_size()


class _SyncedOnCPU(nn.BatchNorm1d):
    """Computes what torch's `SyncBatchNorm` does, which runs on GPUs only."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected (N, C, ...), got {tuple(input.shape)}")

    def forward(self, input: Tensor) -> Tensor:
        """Normalise by the mean and variance over the rows and positions of all processes."""
        self._check_input_dim(input)
        if not self.training:
            return F.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        axes = [axis for axis in range(input.ndim) if axis != 1]
        count = input.numel() // input.shape[1] * dist.get_world_size()  # every process has the same number of rows
        mean = _summed(input.sum(axes)) / count
        centred = input - _as_channels(mean, input)
        variance = _summed(centred.square().sum(axes)) / count
        self._remember(mean, variance * count / (count - 1))
        scaled = centred * _as_channels(torch.rsqrt(variance + self.eps) * self.weight, input)
        return scaled + _as_channels(self.bias, input)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        momentum = cast(float, self.momentum)
        cast(Tensor, self.num_batches_tracked).add_(1)
        cast(Tensor, self.running_mean).lerp_(mean, momentum)
        cast(Tensor, self.running_var).lerp_(variance, momentum)


class _Sum(torch.autograd.Function):
    """The sum over all processes; its gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        summed = values.clone()
        dist.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return _Sum.forward(ctx, gradients[0].contiguous())


def _summed(values: Tensor) -> Tensor:
    return cast(Tensor, _Sum.apply(values))  # type: ignore[no-untyped-call]


def _as_channels(values: Tensor, like: Tensor) -> Tensor:
    return values.view(1, -1, *[1] * (like.ndim - 2))
