"""Test-set predictions kept in records: they answer in place of networks whose weights are gone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from batchensemble import Prediction
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store

MOST = 4_000_000  # most logits that a record keeps, in half precision 8 MB: four members on CIFAR-100


def arrays_of(prediction: Prediction, labels: Tensor) -> dict[str, Any]:
    """The arrays for a record: logits and labels, or nothing if they are too large."""
    if prediction.outputs.numel() > MOST:
        return {}
    return {"logits": prediction.outputs.numpy(), "labels": labels.numpy()}


def as_kept(prediction: Prediction) -> Prediction:
    """A prediction as records keep it, in half precision: what is made of it is the same without the networks.

    Examples:
        >>> as_kept(Prediction(torch.tensor([[[1.0001, 1.0]]]))).outputs
        tensor([[[1., 1.]]])
    """
    return Prediction(prediction.outputs.half().float())


@dataclass(frozen=True, eq=False)
class RecordedPart:
    """One part of a method, as its record knows it."""

    record: Record

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return cast(int, self.record.metrics["parameters"])

    @property
    def seconds(self) -> float | None:
        """How long training took; `None` if other work shared the machine."""
        return self.record.metrics.get("training_seconds")

    @property
    def loss(self) -> float:
        """The cross-entropy in the last epoch."""
        return cast(float, self.record.metrics["train_loss"])


@dataclass(frozen=True, eq=False)
class RecordedClassifier:
    """A classifier without networks: it answers for the test set, and for no other images."""

    parts: Sequence[RecordedPart]

    @classmethod
    def of(cls, runs: Sequence[Run], store: Store | None) -> "RecordedClassifier | None":
        """What the records of the parts' runs have kept, if all are there and have predictions."""
        if store is None or not all(store.has(run) for run in runs):
            return None
        records = [store.get(run) for run in runs]
        return cls([RecordedPart(one) for one in records]) if all("logits" in one.arrays for one in records) else None

    def on_test(self) -> tuple[Prediction, Tensor]:
        """The predictions of all parts for the test set as those of one ensemble, and its labels."""
        arrays = [part.record.arrays for part in self.parts]
        logits = [torch.from_numpy(one["logits"]).float() for one in arrays]
        return Prediction(torch.cat(logits)), torch.from_numpy(arrays[0]["labels"])

    def curves(self) -> list[Any]:
        """The parts' logs; old records have none."""
        return [curve for part in self.parts for curve in part.record.metrics.get("log", ())]

    def provenance(self, since: float) -> Provenance:
        """The hardware and versions that trained the parts, without a duration: little was done since."""
        made = [part.record.provenance for part in self.parts]
        where = "; ".join(dict.fromkeys(one.hardware for one in made))
        return replace(Provenance.now(where), versions=made[0].versions)
