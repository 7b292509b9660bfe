"""A trained method as its user sees it: images in, a prediction out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from batchensemble import Prediction
from batchensemble.lab.data import ImageSet
from batchensemble.lab.methods.ensembles import Method
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.studies.images import View
from batchensemble.lab.studies.parts import TrainedPart, predict

if TYPE_CHECKING:
    from lightning_fabric import Fabric

CURVE = 50  # most epochs of a training's log that a record keeps


@dataclass(frozen=True, eq=False)
class Classifier:
    """The trained parts of a method, used as one classifier.

    Args:
        method: computes the logits of all parts.
        parts: what was trained.
        view: turns images into the networks' inputs.
        fabric: their device and precision.
        test: the test set.
        samples: number of dropout samples, if there is dropout.
        seed: seeds those samples.
        batch: images per forward pass.
    """

    method: Method
    parts: Sequence[TrainedPart]
    view: View
    fabric: "Fabric"
    test: ImageSet
    samples: int = 8
    seed: int = 0
    batch: int = 500

    def predict(self, data: ImageSet) -> Prediction:
        """Every member's logits `(members, N, classes)` for every image, on the CPU."""
        inputs = (self.view(images.to(self.fabric.device)) for images in data.images.split(self.batch))
        return predict(self.method, self.parts, inputs, self.fabric, self.samples, self.seed)

    def on_test(self) -> tuple[Prediction, Tensor]:
        """The predictions for the test set, and its labels."""
        return self.predict(self.test), self.test.labels

    def curves(self) -> list[list[dict[str, float]]]:
        """The parts' logs, short enough for a record."""
        return [_thinned(part.log) for part in self.parts]

    def provenance(self, since: float) -> Provenance:
        """The provenance of what was measured on this hardware since a `time.time()`."""
        return Provenance.now(hardware(self.fabric.device, self.fabric.world_size), since=since)


def _thinned(log: list[dict[str, float]]) -> list[dict[str, float]]:
    """Evenly spaced epochs of a training's log, including the last."""
    every = -(-len(log) // CURVE)
    names = ("epoch", "cross_entropy", "accuracy")
    return [{name: round(line[name], 5) for name in names} for line in log[::-1][::every]][::-1]
