"""Streams of tasks for lifelong learning: one data set, its classes dealt out to tasks."""

from dataclasses import replace
from typing import NamedTuple

import torch

from batchensemble.lab.data.image_set import ImageSet


class Task(NamedTuple):
    """A subset of the classes, with labels counted from zero.

    Attributes:
        train: training images of these classes.
        test: test images of these classes.
        labels: the classes' labels in the whole data set: task label `i` was `labels[i]`.
    """

    train: ImageSet
    test: ImageSet
    labels: tuple[int, ...]


def split_classes(train: ImageSet, test: ImageSet, tasks: int, *, seed: int = 0) -> list[Task]:
    """Deal the classes out to `tasks` tasks of equal size, at random.

    Args:
        train: the whole training set.
        test: the whole test set, with the same classes.
        tasks: number of tasks; must divide the number of classes.
        seed: decides which classes form a task.

    Examples:
        >>> images = torch.zeros(6, 3, 4, 4, dtype=torch.uint8)
        >>> data = ImageSet(images, torch.tensor([0, 1, 2, 3, 2, 0]), classes=4, name="toy")
        >>> first, second = split_classes(data, data, tasks=2)
        >>> second.labels, second.train.labels.tolist()
        ((3, 2), [1, 0, 1])
    """
    if train.classes != test.classes:
        raise ValueError(f"train has {train.classes} classes, test {test.classes}")
    if tasks < 1 or train.classes % tasks:
        raise ValueError(f"tasks must divide the {train.classes} classes, got {tasks}")
    shuffled = torch.randperm(train.classes, generator=torch.Generator().manual_seed(seed))
    groups = [tuple(group.tolist()) for group in shuffled.chunk(tasks)]
    return [Task(_only(train, labels), _only(test, labels), labels) for labels in groups]


def _only(data: ImageSet, labels: tuple[int, ...]) -> ImageSet:
    place = torch.full((data.classes,), -1, dtype=torch.int64, device=data.labels.device)
    place[list(labels)] = torch.arange(len(labels), device=data.labels.device)
    rows = place[data.labels] >= 0
    return replace(
        data,
        images=data.images[rows],
        labels=place[data.labels[rows]],
        classes=len(labels),
        name=f"{data.name}[classes {', '.join(map(str, labels))}]",
        class_names=tuple(data.class_names[i] for i in labels) if data.class_names else (),
    )
