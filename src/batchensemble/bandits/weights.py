"""Weights in a folder: a new file after every training; the one before stays until the new one is safe."""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from batchensemble import files
from batchensemble.disk import sync_folder

_PATTERN = "weights-*.safetensors"


class Weights(NamedTuple):
    """What a file of weights holds.

    Attributes:
        path: the file.
        tensors: those of model and optimiser.
        trainings: how many trainings led to them.
        observed: how many rewards had come by then.
    """

    path: Path
    tensors: dict[str, Tensor]
    trainings: int
    observed: int


def write_weights(folder: Path, tensors: dict[str, Tensor], trainings: int, observed: int) -> None:
    """Write the weights after a training; older ones are removed once these are on the disk."""
    path = folder / f"weights-{trainings:09d}.safetensors"
    files.write(path, "weights", tensors, {"trainings": trainings, "observed": observed})
    sync_folder(folder)
    for other in folder.glob(_PATTERN):
        if other != path:
            other.unlink()


def newest_weights(folder: Path) -> Weights | None:
    """The newest weights that are undamaged, or `None` if there are none at all.

    Raises:
        ValueError: there are weights, and all of them are damaged.
    """
    damage: ValueError | None = None
    for path in sorted(folder.glob(_PATTERN), reverse=True):
        try:
            tensors, header = files.read(path, "weights")
            return Weights(path, tensors, header["trainings"], header["observed"])
        except ValueError as error:  # a power cut while it was written: the one before is still there
            damage = damage or error
    if damage is not None:
        raise damage
    return None
