"""CIFAR-10 and CIFAR-100, from the official Python archives."""

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from batchensemble.lab.data.archive import Archive
from batchensemble.lab.data.image_set import ImageSet
from batchensemble.lab.data.location import data_root

CIFAR10 = Archive(
    url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    md5="c58f30108f718f92721af3b95e74349a",
    folder="cifar-10-batches-py",
    files={
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
        "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
    },
)
CIFAR100 = Archive(
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    md5="eb9058c3a382ffc7106e4002c42a8d85",
    folder="cifar-100-python",
    files={
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "7973b15100ade9c7d40fb424638fde48",
    },
)


def load_cifar10(root: str | Path | None = None, *, archive: Archive = CIFAR10) -> tuple[ImageSet, ImageSet]:
    """Load CIFAR-10's 50,000 training and 10,000 test images.

    Args:
        root: folder with `cifar-10-batches-py/` or the archive; by default see `data_root`. If neither is there, the
            archive is downloaded.
        archive: where the archive is published, and its checksums.

    Raises:
        FileNotFoundError: a batch is missing.
        ValueError: the archive or a batch is damaged or truncated; the message names it.
    """
    folder = archive.ensure(data_root(root))
    names = _names(folder / "batches.meta", b"label_names")
    batches = [folder / f"data_batch_{i}" for i in range(1, 6)]
    train = _read(batches, b"labels", names, "cifar10-train")
    return train, _read([folder / "test_batch"], b"labels", names, "cifar10-test")


def load_cifar100(root: str | Path | None = None, *, archive: Archive = CIFAR100) -> tuple[ImageSet, ImageSet]:
    """Load CIFAR-100's 50,000 training and 10,000 test images with their fine labels; see `load_cifar10`."""
    folder = archive.ensure(data_root(root))
    names = _names(folder / "meta", b"fine_label_names")
    train = _read([folder / "train"], b"fine_labels", names, "cifar100-train")
    return train, _read([folder / "test"], b"fine_labels", names, "cifar100-test")


def _read(paths: list[Path], key: bytes, names: tuple[str, ...], name: str) -> ImageSet:
    batches = [read_batch(path) for path in paths]
    pixels = np.concatenate([batch[b"data"] for batch in batches])
    labels = [label for batch in batches for label in batch[key]]
    images = torch.from_numpy(pixels).reshape(-1, 3, 32, 32)
    return ImageSet(images, torch.tensor(labels), len(names), name, names)


def _names(path: Path, key: bytes) -> tuple[str, ...]:
    return tuple(name.decode() for name in read_batch(path)[key])


def read_batch(path: Path) -> Mapping[bytes, Any]:
    """Read the dictionary in a batch file; keys are bytes, as written by Python 2."""
    content: Mapping[bytes, Any] = ArrayUnpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    return content


class ArrayUnpickler(pickle.Unpickler):
    """Reads numbers, strings, containers and numpy arrays; refuses a pickle that asks for anything else."""

    # The official files name numpy.core; those written by numpy 2 name numpy._core.
    _reconstruct: Any = np.empty(0).__reduce__()[0]
    allowed: Mapping[tuple[str, str], Any] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    }

    def find_class(self, module: str, name: str) -> Any:
        """Resolve a global, the one place where a pickle can reach code; only numpy's arrays pass."""
        try:
            return self.allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"refused {module}.{name}: CIFAR holds numpy arrays only") from None
