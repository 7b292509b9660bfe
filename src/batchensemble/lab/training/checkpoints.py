"""The state of a training on disk: never half written, always the last one saved."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from batchensemble.disk import written_whole


class CorruptCheckpoint(ValueError):
    """A checkpoint's file is damaged, or does not match its log."""


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds one state: tensors and plain values.

    Examples:
        >>> import tempfile
        >>> checkpoint = Checkpoint(Path(tempfile.mkdtemp()) / "last.pt")
        >>> checkpoint.load() is None
        True
        >>> checkpoint.save({"epoch": 3, "weight": torch.ones(2)})
        >>> checkpoint.load()
        {'epoch': 3, 'weight': tensor([1., 1.])}
    """

    path: Path

    def save(self, state: dict[str, Any]) -> None:
        """Replaces the file atomically; if that fails, the previous one is intact.

        Raises:
            OSError: the disk is full (the message says what to do) or cannot be written to.
        """
        with written_whole(self.path) as beside, beside.open("wb") as file:
            torch.save(state, file)

    def load(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """Returns the state, or `None` if nothing was saved yet.

        Raises:
            CorruptCheckpoint: the file is damaged.
        """
        if not self.path.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location=device, weights_only=True)
        except (RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
            raise CorruptCheckpoint(f"{self.path} is damaged: delete it to train from the start") from error
        return state
