"""Batch norms with running statistics for each task, and one scale and shift for all."""

from torch import nn

from batchensemble.ensemble import Ensemble
from batchensemble.nn.conversion.swap import swap_
from batchensemble.nn.init import Fast
from batchensemble.nn.layers import norm, shared_norm
from batchensemble.nn.layers.converted import mark_routed_

OWN = ("running_mean", "running_var", "num_batches_tracked")


class OwnStatistics(norm.BatchNorm):
    """Base of the three norms below."""

    stacked = OWN


class BatchNorm1d(OwnStatistics, norm.BatchNorm1d):
    """`torch.nn.BatchNorm1d` with every member's own statistics and one scale and shift for all."""


class BatchNorm2d(OwnStatistics, norm.BatchNorm2d):
    """`torch.nn.BatchNorm2d` with every member's own statistics and one scale and shift for all."""


class BatchNorm3d(OwnStatistics, norm.BatchNorm3d):
    """`torch.nn.BatchNorm3d` with every member's own statistics and one scale and shift for all."""


KINDS: dict[type[nn.Module], type[norm.BatchNorm]] = {
    shared_norm.BatchNorm1d: BatchNorm1d,
    shared_norm.BatchNorm2d: BatchNorm2d,
    shared_norm.BatchNorm3d: BatchNorm3d,
}
"""Norms that `batchensemble.convert` leaves shared, and what they become."""


def own_statistics_(ensemble: Ensemble) -> None:
    """Give every member of an ensemble its own statistics in all shared batch norms that keep any."""
    swaps: dict[nn.Module, nn.Module] = {}
    for name, module in ensemble.net.named_modules():
        kind = KINDS.get(type(module))
        if kind is not None and isinstance(module, shared_norm.SharedBatchNorm) and module.running_mean is not None:
            swaps[module] = mark_routed_(kind.ensembled(module.plain(None), Fast(len(ensemble))), name)
    ensemble.net = swap_(ensemble.net, swaps)
