"""What makes a training another one: rows, functions and optimisers, in a few characters that can be compared."""

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from batchensemble import files
from batchensemble.lifelong.data import Part, as_it_is
from batchensemble.seeds import seeded

ROWS_OF_TENSORS, ROWS_OF_DATASETS = 64, 8
"""How many inputs are looked at; a dataset reads each of its own from a disk, perhaps."""


def of_rows(part: Part, workers: int = 0) -> tuple[str | None, str | None]:
    """Identify a task's data by some of its inputs, evenly spread, and by their labels; of tensors, by all labels.

    A dataset is read as training reads it, in a process of its own if there are `workers`: what it opens when it is
    first read must not be opened in the parent of those processes. Its rows are read twice, from the same state of
    random numbers (torch's, NumPy's and Python's): inputs or labels that differ nevertheless cannot be identified, and
    are `None`.

    Examples:
        >>> x, y = torch.zeros(9, 2), torch.arange(9) % 2
        >>> inputs, labels = of_rows(Part.of("a", (x, y)))
        >>> of_rows(Part.of("a", (x, 1 - y))) == (inputs, labels), of_rows(Part.of("a", (x, 1 - y)))[0] == inputs
        (False, True)
    """
    if part.tensors is not None:
        x, _ = part.rows(_spread(len(part), ROWS_OF_TENSORS))
        return _of_tensor(x), _of_tensor(part.tensors[1])
    rows = _spread(len(part), ROWS_OF_DATASETS)
    loader: DataLoader[Any] = DataLoader(
        _AsIfNew(part),
        len(rows),
        sampler=[*rows, *rows],
        num_workers=min(1, workers),
        collate_fn=as_it_is,
        generator=torch.Generator(),
    )
    with torch.device("cpu"):
        first, second = ([_of_tensor(tensor) for tensor in batch] for batch in loader)
    inputs, labels = (one if one == other else None for one, other in zip(first, second, strict=True))
    return inputs, labels


def of_function(function: object) -> str:
    """Identify a function by its qualified name, and by the arguments that `functools.partial` gives it.

    Examples:
        >>> loss = torch.nn.functional.cross_entropy
        >>> of_function(loss), of_function(partial(loss, label_smoothing=0.1))
        ('torch.nn.functional.cross_entropy', 'torch.nn.functional.cross_entropy [[], {"label_smoothing": 0.1}]')
    """
    if isinstance(function, partial):
        return f"{of_function(function.func)} {_text([function.args, function.keywords])}"
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def of_optimizer(optimizer: torch.optim.Optimizer) -> str:
    """Identify an optimiser by its class and the numbers of its groups, those it started with."""
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    return f"{of_function(type(optimizer))} {_text(groups)}"


def digest(values: Mapping[str, Tensor] | Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that identify tensors or plain values."""
    found = hashlib.sha256()
    for name, value in values.items():
        found.update(name.encode())
        found.update(files.raw_bytes(value) if isinstance(value, Tensor) else str(value).encode())
    return found.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class _AsIfNew(Dataset[Any]):
    """A task's rows, read from the same state of random numbers every time."""

    part: Part

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        with seeded(0), _others_seeded(0):
            return self.part.rows(indices)


@contextmanager
def _others_seeded(seed: int) -> Iterator[None]:
    """Seed what datasets draw from besides torch; the user's random numbers go on as if nothing had happened."""
    before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


def _spread(count: int, most: int) -> list[int]:
    """At most so many of the numbers below `count`, evenly spread from the first to the last."""
    if count <= most:
        return list(range(count))
    return [i * (count - 1) // (most - 1) for i in range(most)]


def _of_tensor(tensor: Tensor) -> str:
    return digest({f"{tensor.dtype} {tuple(tensor.shape)}": tensor})


def _text(values: object) -> str:
    """JSON, without the keys that JSON does not have, and with the names of types in place of such values."""
    return json.dumps(values, default=lambda value: type(value).__name__, skipkeys=True)
