"""A trained method as its user sees it: images in, a prediction out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batchensemble import Prediction
from batchensemble.lab.data import ImageSet
from batchensemble.lab.methods.ensembles import Method
from batchensemble.lab.studies.images import View
from batchensemble.lab.studies.parts import Trained, predict

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True, eq=False)
class Classifier:
    """The trained parts of a method, used as one classifier.

    Args:
        method: computes the logits of all parts.
        parts: what was trained.
        view: turns images into the networks' inputs.
        fabric: their device and precision.
        samples: number of dropout samples, if there is dropout.
        seed: seeds those samples.
        batch: images per forward pass.
    """

    method: Method
    parts: Sequence[Trained]
    view: View
    fabric: "Fabric"
    samples: int = 8
    seed: int = 0
    batch: int = 500

    def predict(self, data: ImageSet) -> Prediction:
        """Returns every member's logits `(members, N, classes)` for every image, on the CPU."""
        inputs = (self.view(images.to(self.fabric.device)) for images in data.images.split(self.batch))
        return predict(self.method, self.parts, inputs, self.fabric, self.samples, self.seed)
