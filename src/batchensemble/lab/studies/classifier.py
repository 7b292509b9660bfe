"""A trained method as what a user sees of it: pictures in, a prediction out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from batchensemble import Prediction
from batchensemble.lab.data import ImageSet
from batchensemble.lab.methods.ensembles import Method
from batchensemble.lab.studies.images import View

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True, eq=False)
class Classifier:
    """The trained parts of a method, asked together.

    Args:
        method: how they are asked.
        models: the parts, in evaluation mode.
        view: how they see pictures.
        fabric: their device and precision.
        samples: of dropout, where there is any.
        seed: of those samples.
        batch: pictures at a time.
    """

    method: Method
    models: Sequence[nn.Module]
    view: View
    fabric: "Fabric"
    samples: int = 8
    seed: int = 0
    batch: int = 500

    def predict(self, data: ImageSet) -> Prediction:
        """Every member's logits `(members, N, classes)` for every picture, on the CPU."""
        device = self.fabric.device
        with torch.no_grad(), torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(self.seed)
            with self.fabric.autocast():
                parts = [self._logits(images) for images in torch.split(data.images, self.batch)]
        return Prediction(torch.cat(parts, dim=1))

    def _logits(self, images: torch.Tensor) -> torch.Tensor:
        seen = self.view(images.to(self.fabric.device))
        return self.method.logits(self.models, seen, self.samples).float().cpu()
