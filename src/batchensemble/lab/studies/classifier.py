"""A trained method as its user sees it: images in, a prediction out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from batchensemble import Prediction
from batchensemble.lab.data import ImageSet
from batchensemble.lab.methods.ensembles import Method
from batchensemble.lab.studies.images import View
from batchensemble.seeds import seeded

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True, eq=False)
class Classifier:
    """The trained parts of a method, used as one classifier.

    Args:
        method: computes the logits of all parts.
        models: the parts, in evaluation mode.
        view: turns images into the networks' inputs.
        fabric: their device and precision.
        samples: number of dropout samples, if there is dropout.
        seed: seeds those samples.
        batch: images per forward pass.
    """

    method: Method
    models: Sequence[nn.Module]
    view: View
    fabric: "Fabric"
    samples: int = 8
    seed: int = 0
    batch: int = 500

    def predict(self, data: ImageSet) -> Prediction:
        """Returns every member's logits `(members, N, classes)` for every image, on the CPU."""
        with torch.no_grad(), seeded(self.seed, self.fabric.device), self.fabric.autocast():
            parts = [self._logits(images) for images in torch.split(data.images, self.batch)]
        return Prediction(torch.cat(parts, dim=1))

    def _logits(self, images: torch.Tensor) -> torch.Tensor:
        seen = self.view(images.to(self.fabric.device))
        return self.method.logits(self.models, seen, self.samples).float().cpu()
