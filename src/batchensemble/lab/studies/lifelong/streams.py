"""Streams of tasks by name: a data set's classes are dealt out to tasks, in several rounds if there are many tasks."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from batchensemble.lab.data import ImageSet, Task, data_root, draw_crops, procedural, split_classes
from batchensemble.lab.data.image_folder import ImageFolder, class_names
from batchensemble.lab.studies.images import View, load_images
from batchensemble.lifelong.data import Part
from batchensemble.seeds import seed_of

IMAGENET = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])  # mean and standard deviation per channel


class StreamTask(NamedTuple):
    """The training and test rows of a task."""

    train: Part
    test: Part


class Stream(Protocol):
    """Tasks by number, and how their images become network inputs."""

    def task(self, number: int) -> StreamTask:
        """The rows of a task."""
        ...

    def augment(self, images: Tensor) -> Tensor:
        """Training images as network inputs."""
        ...

    def view(self, images: Tensor) -> Tensor:
        """Test images as network inputs."""
        ...


@dataclass(eq=False)
class ImageStream:
    """Tasks over images that fit into memory.

    In each round, every class belongs to one task; the next round deals all classes out anew.

    Args:
        train: all training images.
        test: all test images.
        classes: classes per task.
        seed: seeds the assignment of classes to tasks.
        pad: largest shift of a training image.
    """

    train: ImageSet
    test: ImageSet
    classes: int
    seed: int
    pad: int
    _dealt: tuple[int, list[Task]] = field(default=(-1, []), init=False)

    def task(self, number: int) -> StreamTask:
        """The rows of a task."""
        turn, place = divmod(number, self.train.classes // self.classes)
        if turn != self._dealt[0]:
            seed = seed_of(self.seed, turn) if turn else self.seed
            parts = split_classes(self.train, self.test, self.train.classes // self.classes, seed=seed)
            self._dealt = turn, parts
        task = self._dealt[1][place]
        train, test = (Part.of(str(number), (s.images, s.labels), s.classes) for s in (task.train, task.test))
        return StreamTask(train, test)

    @cached_property
    def _view(self) -> View:
        return View.of(self.train, self.pad)

    def augment(self, images: Tensor) -> Tensor:
        """Shift, flip and normalise, drawing from torch's default generator."""
        crops = draw_crops(len(images), torch.default_generator, self.pad).to(images.device)
        return self._view(images, crops)

    def view(self, images: Tensor) -> Tensor:
        """Normalise."""
        return self._view(images)


@dataclass(frozen=True, eq=False)
class FolderStream:
    """Tasks over images in folders, read when they are needed.

    Args:
        train: holds a folder of training images for every class.
        test: holds the same folders with test images.
        classes: classes per task.
        seed: seeds the assignment of classes to tasks.
        size: side of the images that networks see.
    """

    train: Path
    test: Path
    classes: int
    seed: int
    size: int

    def task(self, number: int) -> StreamTask:
        """The rows of a task.

        Raises:
            FileNotFoundError: a folder is missing or empty.
        """
        names = class_names(self.train)
        order = torch.randperm(len(names), generator=torch.Generator().manual_seed(self.seed)).tolist()
        chosen = order[number * self.classes : (number + 1) * self.classes]
        if len(chosen) < self.classes:
            raise ValueError(f"{self.train} has {len(names)} classes, too few for task {number} of {self.classes}")
        kinds = tuple(names[place] for place in chosen)
        train = ImageFolder(self.train, kinds, self.size, training=True)
        test = ImageFolder(self.test, kinds, self.size)
        return StreamTask(*(Part.of(str(number), data, self.classes) for data in (train, test)))

    def augment(self, images: Tensor) -> Tensor:
        """Normalise; images were cropped at random when they were read."""
        return self.view(images)

    def view(self, images: Tensor) -> Tensor:
        """Normalise by ImageNet's channel statistics."""
        return View(IMAGENET[0], IMAGENET[1], pad=0)(images)


FOLDERS = {
    "imagenet": ("imagenet/train", "imagenet/val", 224),
    "tiny-imagenet": ("tiny-imagenet-val/train", "tiny-imagenet-val/val", 64),
}
"""Subfolders of training and test images in the data folder, and image size; none of this is downloaded."""


FIGURES = "figures"
"""Procedural images of a hundred classes, ten of each: enough for a quick look."""


def open_stream(
    data: str, classes: int, *, share: float = 1.0, seed: int = 0, pad: int = 4, root: Path | None = None
) -> Stream:
    """Open a stream by the name of its data.

    Args:
        data: `imagenet` or `tiny-imagenet` in folders, `figures`, or a name that `load_images` knows.
        classes: classes per task; must divide the number of classes in the data.
        share: fraction of the training images to use.
        seed: seeds the assignment of classes to tasks.
        pad: largest shift of a training image; images in folders are cropped at random instead.
        root: folder of the data sets.
    """
    if data in FOLDERS:
        train, test, size = FOLDERS[data]
        return FolderStream(data_root(root) / train, data_root(root) / test, classes, seed, size)
    everything, asked = procedural(100, train=1000, test=500) if data == FIGURES else load_images(data, root)
    if everything.classes % classes:
        raise ValueError(f"classes must divide the {everything.classes} of {data}, got {classes}")
    shown = everything if share == 1 else everything.subset(share)
    return ImageStream(shown, asked, classes, seed, pad)
