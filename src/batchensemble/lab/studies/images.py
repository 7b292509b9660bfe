"""The studies' image sets by name, and how they become a network's inputs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from batchensemble.lab.data import (
    ImageSet,
    crop_flip,
    draw_crops,
    draw_noise,
    load_cifar10,
    load_cifar100,
    load_digits,
    normalise,
    procedural,
)
from batchensemble.lab.methods.ensembles import Batch, Stream
from batchensemble.lab.training.batches import rank_rows, shuffled
from batchensemble.seeds import seed_of

Sets = tuple[ImageSet, ImageSet]

AT_ONCE = 16  # steps whose images are augmented together: for one batch, a GPU would mostly launch kernels

DATA: dict[str, Callable[[Path | None], Sets]] = {
    "cifar10": load_cifar10,
    "cifar100": load_cifar100,
    "procedural10": lambda _: procedural(10, train=80, test=60),
    "procedural100": lambda _: procedural(100, train=100, test=60),
    "digits": lambda _: load_digits(),
}
"""Training and test images by name; those kept in files are read from a folder or downloaded."""

UNSEEN: dict[str, Callable[[Path | None], ImageSet]] = {
    "cifar10": lambda root: load_cifar100(root)[1],
    "procedural10": lambda _: procedural(10, train=1, test=60, unseen=True)[1],
    "digits": lambda _: draw_noise(),
}
"""Images of no class of the named training set."""


def load_images(name: str, root: Path | None) -> Sets:
    """Load training and test images by name.

    Raises:
        ValueError: there is no data set of that name.
    """
    if name not in DATA:
        raise ValueError(f"data must be one of {', '.join(DATA)}; got {name!r}")
    return DATA[name](root)


@dataclass(frozen=True, eq=False)
class View:
    """Turns images into a network's inputs: floats, normalised by the training set's channel statistics.

    Args:
        mean: mean of every channel.
        std: standard deviation of every channel.
        pad: largest shift of a training image in each direction; zero turns off both shifts and flips.
    """

    mean: Tensor
    std: Tensor
    pad: int = 4

    @classmethod
    def of(cls, train: ImageSet, pad: int) -> "View":
        """The view with the statistics of a training set."""
        return cls(*train.channel_statistics(), pad)

    def to(self, device: torch.device) -> "View":
        """The same view for images on another device."""
        return replace(self, mean=self.mean.to(device), std=self.std.to(device))

    def draw(self, count: int, seed: int) -> Tensor:
        """Draw crops `(count, 3)` for `count` images on the CPU, so that every device gets the same."""
        return draw_crops(count, torch.Generator().manual_seed(seed), self.pad)

    def __call__(self, images: Tensor, crops: Tensor | None = None) -> Tensor:
        """Images `(N, C, H, W)` as network inputs, shifted and flipped if crops are given."""
        moved = crop_flip(images, crops, self.pad) if crops is not None and self.pad else images
        seen = normalise(moved, self.mean, self.std)
        return seen.contiguous(memory_format=torch.channels_last) if seen.is_cuda else seen


@dataclass(frozen=True, eq=False)
class ImageBatches:
    """Batches of images kept on the device, gathered and augmented there as a function of seed and epoch.

    Args:
        data: the training set, on the device.
        view: turns images into the network's inputs.
        streams: the seeds of order and crops of each stream; a batch holds the rows of one after those of another.
        size: rows of one stream in the batch of all processes; a smaller remainder is dropped.
        rank: index of this process.
        world: number of processes that share a batch.
        own_members: see `rank_rows`.
    """

    data: ImageSet
    view: View
    streams: tuple[Stream, ...]
    size: int
    rank: int = 0
    world: int = 1
    own_members: bool = False

    def __post_init__(self) -> None:
        if len(self.data) < self.size:
            raise ValueError(f"a batch of {self.size} rows needs more than the {len(self.data)} pictures given")

    def __len__(self) -> int:
        return len(self.data) // self.size

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        total = self.size * len(self.streams)
        mine = torch.arange(total)[rank_rows(total, self.rank, self.world, own_members=self.own_members)]
        device = self.data.images.device
        order, crops = (drawn[:, mine].to(device) for drawn in self._drawn(number))
        place = mine.to(device) if self.world > 1 else None
        for rows, moves in zip(order.split(AT_ONCE), crops.split(AT_ONCE), strict=True):
            images = self.view(self.data.images[rows.flatten()], moves.flatten(0, 1)).split(len(mine))
            for seen, labels in zip(images, self.data.labels[rows], strict=True):
                yield Batch(seen, labels, place, total if self.world > 1 else 0)

    def _drawn(self, number: int) -> tuple[Tensor, Tensor]:
        """Draw the rows `(steps, total)` and crops `(steps, total, 3)` of all processes for every step."""
        steps = len(self)
        order = shuffled([seed_of(stream.order, number) for stream in self.streams], len(self.data), self.size)
        crops = [self.view.draw(steps * self.size, seed_of(stream.crops, number, 1)) for stream in self.streams]
        return order, torch.cat([crop.view(steps, self.size, 3) for crop in crops], 1)
