"""Corrupted sets on disk, in the published layout: one `.npy` for every corruption, and `labels.npy`.

A file holds `(5 N, 32, 32, 3)` uint8: the N images at severity 1, then at severity 2, and so on. A set made here also
has `origin.json`, which says what it was made from and how; the published set has none.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from batchensemble.disk import written_whole
from batchensemble.lab.data.corruptions.registry import SEVERITIES, check_name, check_severity
from batchensemble.lab.data.image_set import ImageSet

ORIGIN = "origin.json"


@dataclass(frozen=True)
class Origin:
    """What a corrupted set was made from, and how.

    Attributes:
        source: name of the clean set.
        checksum: checksum of its pixels and labels.
        seed: seed of all random numbers.
        frost: which frost was used: ours is drawn.
        recipe: version, increased when a corruption is computed in another way.
    """

    source: str
    checksum: str
    seed: int
    frost: str
    recipe: int = 1


def read_origin(folder: str | Path) -> Origin | None:
    """Read what the set in `folder` was made from, and how; `None` for the published one."""
    path = Path(folder) / ORIGIN
    if not path.exists():
        return None
    try:
        return Origin(**json.loads(path.read_text()))
    except (json.JSONDecodeError, TypeError) as error:
        raise ValueError(f"{path}: not an origin of a corrupted set ({error})") from error


def write_origin(folder: Path, origin: Origin) -> None:
    """Write `origin.json`."""
    with written_whole(folder / ORIGIN) as beside:
        beside.write_text(json.dumps(asdict(origin), indent=2))


def load_cifar_c(folder: str | Path, name: str, severity: int, *, classes: int = 10) -> ImageSet:
    """Load one corruption at one severity, of the published set or of one made here.

    Only the images asked for are read from disk.

    Args:
        folder: the folder with the `.npy` files.
        name: one of `CORRUPTIONS`.
        severity: 1 to 5.
        classes: 10 for CIFAR-10-C, 100 for CIFAR-100-C.

    Raises:
        FileNotFoundError: the file of this corruption, or `labels.npy`, is missing.
        ValueError: a file does not have the published layout, or the name or severity is unknown.
    """
    check_name(name)
    check_severity(severity)
    images, labels = (_mapped(Path(folder) / f"{stem}.npy") for stem in (name, "labels"))
    if images.shape[1:] != (32, 32, 3) or images.dtype != np.uint8 or len(images) % len(SEVERITIES):
        raise ValueError(f"{folder}/{name}.npy: expected uint8 (5 N, 32, 32, 3), got {images.dtype} {images.shape}")
    if labels.shape != images.shape[:1]:
        raise ValueError(f"{folder}/labels.npy: expected ({len(images)},) as in {name}.npy, got {labels.shape}")
    count = len(images) // len(SEVERITIES)
    rows = slice((severity - 1) * count, severity * count)
    pixels = torch.from_numpy(np.ascontiguousarray(images[rows].transpose(0, 3, 1, 2)))
    origin = read_origin(folder)
    title = f"{origin.source if origin else f'cifar{classes}'}-c/{name}/{severity}"
    return ImageSet(pixels, torch.from_numpy(labels[rows].astype(np.int64)), classes, title)


def _mapped(path: Path) -> np.ndarray:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: missing; unpack the published set there, or make one by make_cifar_c")
    try:
        mapped: np.ndarray = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: damaged or truncated ({error})") from error
    return mapped
