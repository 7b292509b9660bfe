"""BN-tuned: one network in which every task has its own batch norms and head."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from batchensemble.lab.methods.lifelong.batch_ensemble import LearnerStudent
from batchensemble.lab.methods.lifelong.method import Network
from batchensemble.lifelong import Learner


@dataclass(frozen=True)
class BNTuned:
    """The first task trains everything; later ones train their own norms (scale, shift, statistics) and head.

    This is the library's learner without fast weights. To compare at an equal number of parameters, give it a wider
    network.

    Args:
        lr_scale: learning rate of later tasks relative to that of the first.
    """

    lr_scale: float = 1.0

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> LearnerStudent:
        """A learner whose tasks differ only in their norms, which start from the first task's.

        Raises:
            ValueError: the network has no batch norm.
        """
        trunk = network(torch.Generator().manual_seed(seed))
        if not any(_is_norm("", module) for module in trunk.modules()):
            raise ValueError("BN-tuned needs a network with batch norms, got one without")
        learner = Learner(
            trunk, trunk.features, norm="member", include=_is_norm, start="first", seed=seed, folder=folder
        )
        return LearnerStudent(learner, self.lr_scale)


def _is_norm(name: str, module: nn.Module) -> bool:
    return isinstance(module, nn.BatchNorm2d)
