"""A training while it lasts, in one file: what a killed process continues from."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from batchensemble.disk import written_whole


@dataclass(frozen=True)
class Checkpoint:
    """A training in progress, in one file that is replaced in one move.

    Args:
        path: the file.
        identity: plain values; a file with other values belongs to another training, and does not count.
    """

    path: Path
    identity: Mapping[str, Any]

    def save(self, state: dict[str, Any]) -> None:
        """Replace the file; a process killed at any moment leaves the old one or the new one."""
        with written_whole(self.path) as beside, beside.open("wb") as file:
            torch.save({"identity": dict(self.identity), **state}, file)

    def load(self) -> dict[str, Any] | None:
        """The saved state, or `None` if there is none of this training; warns if there is one of another training.

        Raises:
            ValueError: the file is damaged.
        """
        if not self.path.exists():
            return None
        state = read_checkpoint(self.path)
        if state["identity"] == dict(self.identity):
            return state
        warnings.warn(f"{self.path} is of another training, which is given up: this one starts anew", stacklevel=5)
        return None


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The state in a checkpoint's file, whichever training it belongs to.

    Raises:
        ValueError: the file is damaged.
    """
    with path.open("rb") as file:
        try:
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
            return {"identity": state["identity"], **state}
        except Exception as error:  # an unpickler stumbles over foreign bytes in many ways
            raise ValueError(f"{path} is damaged: delete it, and the task starts anew") from error
