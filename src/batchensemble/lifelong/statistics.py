"""Batch norms whose running statistics belong to the tasks while scale and shift stay common property."""

from torch import nn

from batchensemble.ensemble import Ensemble
from batchensemble.nn import norm
from batchensemble.nn.convert import swap_

OWN = ("running_mean", "running_var", "num_batches_tracked")


class BatchNorm1d(norm.BatchNorm1d):
    """`torch.nn.BatchNorm1d` with every member's own statistics and one scale and shift for all."""

    stacked = OWN  # type: ignore[assignment]


class BatchNorm2d(norm.BatchNorm2d):
    """`torch.nn.BatchNorm2d` with every member's own statistics and one scale and shift for all."""

    stacked = OWN  # type: ignore[assignment]


class BatchNorm3d(norm.BatchNorm3d):
    """`torch.nn.BatchNorm3d` with every member's own statistics and one scale and shift for all."""

    stacked = OWN  # type: ignore[assignment]


KINDS: dict[type[nn.Module], type[norm.BatchNorm]] = {
    nn.BatchNorm1d: BatchNorm1d,
    nn.BatchNorm2d: BatchNorm2d,
    nn.BatchNorm3d: BatchNorm3d,
}


def own_statistics_(ensemble: Ensemble) -> None:
    """Give every member of an ensemble its own statistics in all shared batch norms that keep any."""
    swaps: dict[nn.Module, nn.Module] = {}
    for name, module in ensemble.net.named_modules():
        kind = KINDS.get(type(module))
        if kind is not None and module.running_mean is not None:
            swaps[module] = new = kind.ensembled(module, len(ensemble))
            new.where, new.routed = name, True
    ensemble.net = swap_(ensemble.net, swaps)
