"""Tables: rows of numbers and words with a class to predict, standardised and split into training and test."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from batchensemble.lab.data.rows import (
    CENSUS,
    INCOME,
    OCCUPATION,
    SHUTTLE,
    Labelled,
    encode_people,
    read_people,
    read_shuttle,
)

HELD_OUT = 0.2  # share of the rows that is for testing


@dataclass(frozen=True, eq=False)
class Table:
    """Rows `(N, features)` as float32, labels `(N,)` as int64.

    Attributes:
        rows: the features, each with mean 0 and variance 1 over the training rows.
        labels: one label in `[0, classes)` for every row.
        classes: number of classes.
    """

    rows: Tensor
    labels: Tensor
    classes: int

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device) -> "Table":
        """The same table on another device."""
        return replace(self, rows=self.rows.to(device), labels=self.labels.to(device))


def _people(target: int) -> Callable[[Path | None], Labelled]:
    return lambda root: encode_people(read_people(CENSUS.find(root)), target)


def _shuttle(root: Path | None) -> Labelled:
    return read_shuttle(SHUTTLE.find(root))


def _toy(_: Path | None) -> Labelled:
    chance = np.random.default_rng(0)
    features = chance.normal(size=(600, 8))
    scores = np.tanh(features @ chance.normal(size=(8, 16))) @ chance.normal(size=(16, 3))
    return features, (scores + chance.normal(size=scores.shape)).argmax(1)


TABLES: dict[str, Callable[[Path | None], Labelled]] = {
    "income": _people(INCOME),
    "occupation": _people(OCCUPATION),
    "shuttle": _shuttle,
    "toy": _toy,
}
"""Features and labels by name: two questions about people in a census, states of a shuttle, and a synthetic one."""


def load_table(name: str, root: Path | None = None) -> tuple[Table, Table]:
    """Load training and test rows by name; which rows are for testing never changes.

    Args:
        name: `income`, `occupation`, `shuttle` or `toy`.
        root: folder of the data sets; see `data_root`.

    Raises:
        ValueError: there is no such table, or its file is damaged.

    Examples:
        >>> train, test = load_table("toy")
        >>> train.rows.shape, len(test), train.classes
        (torch.Size([480, 8]), 120, 3)
    """
    if name not in TABLES:
        raise ValueError(f"data must be one of {', '.join(TABLES)}; got {name!r}")
    features, labels = TABLES[name](root)
    order = np.random.default_rng(0).permutation(len(features))
    test, train = np.split(order, [round(HELD_OUT * len(order))])
    spread = features[train].std(0)
    standardised = (features - features[train].mean(0)) / np.where(spread == 0, 1, spread)
    rows, answers = torch.from_numpy(standardised).float(), torch.from_numpy(labels)
    classes = int(answers.max()) + 1
    return Table(rows[train], answers[train], classes), Table(rows[test], answers[test], classes)
