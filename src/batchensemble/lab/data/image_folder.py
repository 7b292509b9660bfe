"""Images in folders, one folder per class, read on demand: ImageNet, Tiny-ImageNet, your own."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

ENDINGS = {".jpeg", ".jpg", ".png", ".bmp", ".webp"}
SHARE = (0.08, 1.0)  # share of an image's area that a random crop covers
SHAPE = (3 / 4, 4 / 3)  # aspect ratio of a random crop, width to height


@dataclass(frozen=True, eq=False)
class ImageFolder(Dataset[Any]):
    """Rows of (image `(3, size, size)` uint8, label), opened one by one.

    In training an image is a random crop of the file, mirrored half of the time (drawn from torch's default
    generator); otherwise it is the centre crop. Both are as usual for ImageNet.

    Args:
        root: holds a folder of images for every class.
        classes: names of the folders to use; label i is `classes[i]`. By default all, sorted by name.
        size: side of the images.
        training: whether crops are random.
    """

    root: Path
    classes: tuple[str, ...] = ()
    size: int = 224
    training: bool = False
    rows: list[tuple[Path, int]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", self.classes or class_names(self.root))
        for label, name in enumerate(self.classes):
            files = sorted(path for path in (self.root / name).rglob("*") if path.suffix.lower() in ENDINGS)
            if not files:
                raise FileNotFoundError(f"no pictures of class '{name}' in {self.root / name}")
            self.rows.extend((path, label) for path in files)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        from PIL import Image, UnidentifiedImageError

        path, label = self.rows[row]
        try:
            with Image.open(path) as file:
                picture = file.convert("RGB")
        except (UnidentifiedImageError, OSError) as error:
            raise ValueError(f"{path} is damaged or no picture: {error}") from error
        box, mirrored = _random_box(*picture.size) if self.training else (_middle_box(*picture.size), False)
        cut = picture.resize((self.size, self.size), Image.Resampling.BILINEAR, box)
        pixels = torch.from_numpy(np.array(cut)).permute(2, 0, 1)
        return (pixels.flip(2) if mirrored else pixels), label


def class_names(root: Path) -> tuple[str, ...]:
    """The names of the class folders in a folder.

    Raises:
        FileNotFoundError: there are none.
    """
    names = tuple(sorted(path.name for path in root.iterdir() if path.is_dir())) if root.is_dir() else ()
    if not names:
        raise FileNotFoundError(f"expected a folder of pictures for every class in {root}, found none")
    return names


Box = tuple[float, float, float, float]


def _random_box(width: int, height: int) -> tuple[Box, bool]:
    """Draw a crop of random area, shape and position, and whether to mirror it; the centre if ten draws do not fit."""
    for _ in range(10):
        share, shape, left, top, mirror = torch.rand(5).tolist()
        area = width * height * (SHARE[0] + share * (SHARE[1] - SHARE[0]))
        ratio = SHAPE[0] * (SHAPE[1] / SHAPE[0]) ** shape
        wide, high = (area * ratio) ** 0.5, (area / ratio) ** 0.5
        if wide <= width and high <= height:
            x, y = left * (width - wide), top * (height - high)
            return (x, y, x + wide, y + high), mirror < 0.5
    return _middle_box(width, height), bool(torch.rand(()) < 0.5)


def _middle_box(width: int, height: int) -> Box:
    """The central square over 7/8 of the shorter side: 224 of 256."""
    side = 0.875 * min(width, height)
    x, y = (width - side) / 2, (height - side) / 2
    return x, y, x + side, y + side
