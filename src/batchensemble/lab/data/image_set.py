"""A set of labelled images, as returned by every image source of the laboratory."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images `(N, C, H, W)` as uint8, labels `(N,)` as int64.

    Attributes:
        images: the pixels, 0 to 255.
        labels: one label in `[0, classes)` for every image.
        classes: number of classes, not all of which need occur.
        name: name of the set, for records and figures.
        class_names: a name for every class, or empty.

    Examples:
        >>> images = torch.zeros(4, 3, 32, 32, dtype=torch.uint8)
        >>> data = ImageSet(images, torch.tensor([0, 1, 0, 1]), classes=2, name="black")
        >>> len(data), data.subset(0.5).labels.tolist()
        (4, [0, 1])
    """

    images: Tensor
    labels: Tensor
    classes: int
    name: str
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            got = f"{self.images.dtype} {tuple(self.images.shape)}"
            raise ValueError(f"{self.name}: images must be uint8 (N, C, H, W), got {got}")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            got = f"{self.labels.dtype} {tuple(self.labels.shape)}"
            raise ValueError(f"{self.name}: labels must be int64 ({len(self.images)},), got {got}")
        if len(self) and not (int(self.labels.min()) >= 0 and int(self.labels.max()) < self.classes):
            found = f"{int(self.labels.min())} to {int(self.labels.max())}"
            raise ValueError(f"{self.name}: labels must be in [0, {self.classes}), got {found}")
        if self.class_names and len(self.class_names) != self.classes:
            raise ValueError(f"{self.name}: {self.classes} classes, but {len(self.class_names)} class names")

    def __len__(self) -> int:
        return len(self.images)

    def take(self, rows: Tensor, name: str | None = None) -> "ImageSet":
        """The images of `rows` (indices or a mask), in that order."""
        return replace(self, images=self.images[rows], labels=self.labels[rows], name=name or self.name)

    def to(self, device: torch.device | str) -> "ImageSet":
        """The same set on another device."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

    def subset(self, fraction: float, seed: int = 0) -> "ImageSet":
        """The same share of every class, in the set's own order.

        With the same seed, smaller subsets lie inside larger ones: the 10 % are part of the 20 %.
        """
        chosen = self._balanced(fraction, seed)
        return self.take(chosen, f"{self.name}[{fraction:.0%}, seed {seed}]")

    def split(self, fraction: float, seed: int = 0) -> "tuple[ImageSet, ImageSet]":
        """Split into a set for training and `fraction` of every class held out for validation."""
        held_out = self._balanced(fraction, seed)
        return self.take(~held_out, f"{self.name}-train"), self.take(held_out, f"{self.name}-validation")

    def channel_statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of every channel, `(C,)` each, of pixels scaled to `[0, 1]`."""
        counts = torch.stack([torch.bincount(c.flatten(), minlength=256) for c in self.images.unbind(1)])
        levels = torch.arange(256, dtype=torch.float64, device=counts.device) / 255
        share = counts.double() / counts.sum(1, keepdim=True)
        mean = (share * levels).sum(1)
        return mean.float(), (share * levels**2).sum(1).sub(mean**2).sqrt().float()

    def _balanced(self, fraction: float, seed: int) -> Tensor:
        """A mask `(N,)` of `fraction` of every class; masks of the same seed are nested."""
        if not 0 < fraction <= 1:
            raise ValueError(f"fraction must be in (0, 1], got {fraction}")
        shuffled = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        labels = self.labels.cpu()[shuffled]
        mask = torch.zeros(len(self), dtype=torch.bool)
        for label in range(self.classes):
            rows = shuffled[labels == label]
            mask[rows[: max(1, round(fraction * len(rows)))]] = True
        return mask.to(self.labels.device)
