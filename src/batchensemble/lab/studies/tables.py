"""Trains a method on a table and measures it on the rows held out."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import torch

from batchensemble import Prediction
from batchensemble.lab.data import Table, load_table
from batchensemble.lab.methods.ensembles import Batch, Method, SeededMethod, Single, Stream, method_from, settings_of
from batchensemble.lab.models import dense_classifier
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run, tupled
from batchensemble.lab.studies.parts import TrainedPart, cost_of, predict, train_part
from batchensemble.lab.studies.scores import quality, scores
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.batches import shuffled
from batchensemble.lab.training.devices import start_fabric
from batchensemble.lab.training.fit import TrainingJob
from batchensemble.lab.training.optimizers import adamw
from batchensemble.lab.training.schedules import cosine
from batchensemble.seeds import seed_of

if TYPE_CHECKING:
    from lightning_fabric import Fabric

AT_ONCE = 4096  # rows per forward pass


@dataclass(frozen=True)
class Settings:
    """How a classifier of rows is trained: AdamW, its rate falling along half a cosine.

    Args:
        method: the kind of ensemble.
        data: name of the table.
        hidden: widths of the hidden layers.
        epochs: passes over the training rows.
        batch: rows per step.
        lr: learning rate.
        weight_decay: weight decay.
        samples: number of dropout samples.
    """

    method: Method = field(default_factory=Single)
    data: str = "income"
    hidden: tuple[int, ...] = (256, 256, 256)
    epochs: int = 10
    batch: int = 256
    lr: float = 1e-3
    weight_decay: float = 3e-4
    samples: int = 16

    def settings(self) -> dict[str, Any]:
        """The settings as plain JSON."""
        return {**vars(self), "method": settings_of(self.method)}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build the settings from JSON."""
        return cls(**{**tupled(settings), "method": method_from(settings["method"])})


@dataclass(frozen=True, eq=False)
class TableBatches:
    """Batches of a table's rows as a function of seed and epoch; a remainder smaller than a batch is dropped.

    Args:
        data: the training rows, on the device.
        streams: the seeds of the order of each stream; a batch holds the rows of one after those of another.
        size: rows of one stream in a batch.
    """

    data: Table
    streams: tuple[Stream, ...]
    size: int

    def __post_init__(self) -> None:
        if len(self.data) < self.size:
            raise ValueError(f"a batch of {self.size} rows needs more than the {len(self.data)} rows given")

    def __len__(self) -> int:
        return len(self.data) // self.size

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        order = shuffled([seed_of(stream.order, number) for stream in self.streams], len(self.data), self.size)
        for chosen in order.to(self.data.rows.device):
            yield Batch(self.data.rows[chosen], self.data.labels[chosen])


def run(run: Run, context: Context) -> Record:
    """Train the run's method, unless it is trained already, and measure it."""
    began = time.time()
    settings = Settings.of(run.settings)
    fabric = start_fabric(context.device)
    train, test = (table.to(fabric.device) for table in load_table(settings.data, context.data))
    parts = [_trained(settings, part, train, fabric, context) for part in settings.method.parts(run.seed)]
    on_train, on_test = (predict_rows(settings, parts, table, fabric, run.seed) for table in (train, test))
    metrics = {
        **quality(on_test, test.labels.cpu()),
        "train_accuracy": scores(on_train, train.labels.cpu())["accuracy"],
        **cost_of(parts, settings.method, settings.epochs, settings.samples),
    }
    return Record(run, metrics, Provenance.now(hardware(fabric.device), since=began))


def predict_rows(settings: Settings, parts: list[TrainedPart], data: Table, fabric: "Fabric", seed: int) -> Prediction:
    """Every member's logits `(members, N, classes)` for every row of a table, on the CPU."""
    return predict(settings.method, parts, data.rows.split(AT_ONCE), fabric, settings.samples, seed)


def _trained(settings: Settings, part: SeededMethod, train: Table, fabric: "Fabric", context: Context) -> TrainedPart:
    return train_part(settings, part, partial(_training, settings, part, train, fabric.device), fabric, context)


def _training(settings: Settings, part: SeededMethod, train: Table, device: torch.device) -> TrainingJob:
    method = part.method
    network = partial(dense_classifier, train.rows.shape[1], settings.hidden, train.classes)
    model = method.build(network, part.seed).to(device)
    return TrainingJob(
        model,
        loss=partial(method.loss, weight_decay=settings.weight_decay),
        batches=TableBatches(train, method.streams(part.seed), settings.batch),
        optimizer=adamw(method.groups(model, settings.lr, settings.weight_decay), device),
        schedule=cosine,
        epochs=settings.epochs,
        seed=part.seed,
    )


TABLES = Study("tables", run)
