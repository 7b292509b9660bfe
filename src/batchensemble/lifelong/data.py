"""A task's data, and batches that mix the rows of several tasks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler, TensorDataset, default_collate

from batchensemble.lifelong.names import check_new, checked_name

TaskData: TypeAlias = tuple[Tensor, Tensor] | Dataset[Any]
"""Inputs `(N, ...)` with labels `(N,)`, or a map-style dataset of (input, label)."""


class Batch(NamedTuple):
    """Inputs `(N, ...)`, labels `(N,)`, and the place `(N,)` of every row's task among those trained together."""

    x: Tensor
    y: Tensor
    task: Tensor


@dataclass(frozen=True, eq=False)
class Part:
    """One task's rows.

    Args:
        name: the task's name, for messages.
        data: its dataset.
        classes: labels lie in `[0, classes)`.
    """

    name: str
    data: Dataset[Any]
    classes: int

    @classmethod
    def of(cls, name: str, data: TaskData, classes: int | None = None) -> "Part":
        """Make a part of a user's data; classes are counted if labels are a tensor.

        Raises:
            TypeError: neither two tensors nor a map-style dataset.
            ValueError: no rows, labels outside `[0, classes)`, or nothing that says how many classes there are.
        """
        if isinstance(data, tuple | list):
            data = _paired(name, data)
        elif type(data) is TensorDataset:
            data = _paired(name, data.tensors)
        if isinstance(data, Tensor) or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
            kind = type(data).__name__
            raise TypeError(f"task '{name}': expected (inputs, labels) or a map-style dataset, got {kind}")
        if not len(data):  # type: ignore[arg-type]
            raise ValueError(f"task '{name}' is empty: it has no rows to learn from")
        if type(data) is not TensorDataset:  # a subclass may make rows of its own from the tensors
            if classes is None:
                raise ValueError(f"task '{name}' is a dataset, which cannot be asked for its labels: give classes=")
            return cls(name, data, _at_least_two(name, classes))
        labels = data.tensors[1]
        if labels.dtype != torch.int64 or labels.ndim != 1:
            raise ValueError(f"task '{name}': labels must be int64 (N,), got {labels.dtype} {tuple(labels.shape)}")
        part = cls(name, data, _at_least_two(name, int(labels.max()) + 1 if classes is None else classes))
        part.check(labels)
        return part

    def __len__(self) -> int:
        return len(self.data)  # type: ignore[arg-type]

    @property
    def tensors(self) -> tuple[Tensor, ...] | None:
        """Inputs and labels, if these two tensors are all that the data are."""
        return self.data.tensors if type(self.data) is TensorDataset else None

    def rows(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Inputs and labels of some rows."""
        if self.tensors is not None:
            chosen = torch.as_tensor(indices, device="cpu")
            x, y = (tensor[chosen.to(tensor.device)] for tensor in self.tensors)
            return x, y
        x, y = _collated(self.name, [self.data[i] for i in indices])
        self.check(y)
        return x, y

    def check(self, labels: Tensor) -> None:
        """Raise if a label does not fit the head."""
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= self.classes:
            raise ValueError(
                f"task '{self.name}' has {self.classes} classes, so labels must lie in [0, {self.classes}); "
                f"got {low if low < 0 else high}"
            )


def parts_of(tasks: Mapping[str, TaskData], classes: Mapping[str, int], known: Sequence[str]) -> tuple[Part, ...]:
    """Make parts of the data of tasks that are learned together.

    Args:
        tasks: data by name.
        classes: numbers of classes by name, where they are not to be counted.
        known: names that are taken.

    Raises:
        ValueError: no task, a name that is taken or unfit, or data that `Part.of` refuses.
    """
    if not tasks:
        raise ValueError("expected at least one task to learn, got none")
    if not classes.keys() <= tasks.keys():
        raise ValueError(f"classes= names tasks that are not to be learned: {sorted(classes.keys() - tasks.keys())}")
    names = [checked_name(name) for name in tasks]
    check_new(names, known, "forget it first, or choose another name")
    return tuple(Part.of(name, data, classes.get(key)) for name, (key, data) in zip(names, tasks.items(), strict=True))


def _paired(name: str, data: Sequence[Any]) -> TensorDataset:
    if len(data) != 2 or not all(isinstance(tensor, Tensor) for tensor in data):
        kinds = ", ".join(type(part).__name__ for part in data)
        raise TypeError(f"task '{name}': expected inputs and labels, two tensors; got ({kinds})")
    inputs, labels = data
    if inputs.shape[:1] != labels.shape[:1]:
        raise ValueError(f"task '{name}': expected a label for each of {len(inputs)} inputs, got {len(labels)}")
    return TensorDataset(inputs, labels)


def _collated(name: str, rows: list[Any]) -> tuple[Tensor, Tensor]:
    """A dataset's rows as one batch, the labels as int64."""
    batch = default_collate(rows)
    if not isinstance(batch, tuple | list) or [isinstance(part, Tensor) for part in batch] != [True, True]:
        kinds = [type(part).__name__ for part in (rows[0] if isinstance(batch, tuple | list) else rows[:1])]
        raise TypeError(
            f"task '{name}': a dataset's rows must be (input, label), an array and a number; got ({', '.join(kinds)})"
        )
    x, y = batch
    if y.ndim != 1 or y.is_floating_point() or y.is_complex():
        raise ValueError(f"task '{name}': labels must be integers (N,), got {y.dtype} {tuple(y.shape)}")
    return x, y.long()


def _at_least_two(name: str, classes: int) -> int:
    if classes < 2:
        raise ValueError(f"task '{name}' needs at least two classes to tell apart, got {classes}")
    return classes


@dataclass(frozen=True, eq=False)
class Pool(Dataset[Any]):
    """The rows of tasks that are learned together, one task's after another's."""

    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        """A whole batch at once: torch's loaders call this method if there is one."""
        wanted, start, pieces = np.asarray(indices), 0, []
        for task, part in enumerate(self.parts):
            own = wanted[(wanted >= start) & (wanted < start + len(part))] - start
            start += len(part)
            if len(own):
                x, y = part.rows(own.tolist())
                pieces.append(Batch(x, y, torch.full((len(own),), task, device="cpu")))
        return Batch(*(torch.cat(column) if len(column) > 1 else column[0] for column in zip(*pieces, strict=True)))


def batches(pool: Pool, size: int, seed: int, workers: int = 0) -> Iterator[Batch]:
    """One epoch in an order that the seed decides; an incomplete last batch is left out, unless it is the only one.

    Examples:
        >>> pool = Pool((Part.of("a", (torch.zeros(5, 3), torch.tensor([0, 1, 0, 1, 1]))),))
        >>> [batch.x.shape for batch in batches(pool, size=2, seed=0)]
        [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    generator = torch.Generator().manual_seed(seed)
    loader: DataLoader[Any] = DataLoader(
        pool,
        size,
        sampler=_Shuffled(len(pool), generator),
        drop_last=len(pool) >= size,
        num_workers=workers,
        collate_fn=as_it_is,
        generator=generator,
    )
    with torch.device("cpu"):  # where the generator is, wherever torch puts tensors by default
        return iter(loader)


@dataclass(frozen=True)
class _Shuffled(Sampler[int]):
    """All of `count` rows in an order that a generator draws, wherever torch puts tensors by default."""

    count: int
    generator: torch.Generator

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        yield from torch.randperm(self.count, generator=self.generator, device=self.generator.device).tolist()


def steps_of(pool: Pool, size: int) -> int:
    """Batches in an epoch."""
    return max(1, len(pool) // size)


def as_it_is(batch: Any) -> Any:
    """What a loader makes of a batch that a dataset gives as a whole."""
    return batch
