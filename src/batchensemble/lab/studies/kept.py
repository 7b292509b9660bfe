"""Test-set predictions kept in records, and what can be computed from them once the weights are gone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from batchensemble import Prediction
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store
from batchensemble.lab.studies.scores import quality

MOST = 2_000_000  # most logits that a record keeps: 4 MB


def arrays_of(prediction: Prediction, labels: Tensor) -> dict[str, Any]:
    """Returns the arrays for a record: logits and labels, or nothing if they are too large."""
    if prediction.outputs.numel() > MOST:
        return {}
    return {"logits": prediction.outputs.numpy(), "labels": labels.numpy()}


def record_with_predictions(store: Store | None, run: Run) -> Record | None:
    """Returns the record of a run if it exists and has predictions."""
    record = store.get(run) if store is not None and store.has(run) else None
    return record if record is not None and "logits" in record.arrays else None


def prediction_of(records: Sequence[Record]) -> tuple[Prediction, Tensor]:
    """Joins the predictions of all records into those of one ensemble, and returns them with the labels."""
    outputs = [torch.from_numpy(record.arrays["logits"]).float() for record in records]
    return Prediction(torch.cat(outputs)), torch.from_numpy(records[0].arrays["labels"])


def joined(run: Run, networks: Sequence[Record]) -> Record:
    """Builds a naive ensemble's record from those of its networks; they do not give its training accuracy."""
    prediction, labels = prediction_of(networks)
    log = [line for network in networks for line in network.metrics.get("log", ())]
    return measured(run, networks, {**quality(prediction, labels), "log": log}, arrays_of(prediction, labels))


def measured(run: Run, networks: Sequence[Record], metrics: dict[str, Any], arrays: dict[str, Any]) -> Record:
    """Builds the record of what was measured on kept predictions: with the networks' cost, hardware and versions."""
    parts = [network.metrics for network in networks]
    cost = {
        **{name: parts[0][name] for name in ("epochs", "samples")},
        **{
            name: sum(part[name] for part in parts)
            for name in ("parameters", "passes", "training_seconds")
            if all(name in part for part in parts)
        },
        "train_loss": sum(part["train_loss"] for part in parts) / len(parts),
    }
    where = "; ".join(dict.fromkeys(network.provenance.hardware for network in networks))
    made = replace(Provenance.now(where), versions=networks[0].provenance.versions)  # those that computed it
    return Record(run, {**metrics, **cost}, made, arrays)
