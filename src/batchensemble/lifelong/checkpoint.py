"""A training while it lasts, in one file: what a killed process continues from."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batchensemble.checkpoint import DamagedCheckpoint, load_checkpoint, save_checkpoint


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
        save_checkpoint(self.path, {"identity": dict(self.identity), **state})

    def load(self) -> dict[str, Any] | None:
        """The saved state, or `None` if there is none of this training; warns if there is one of another training.

        Raises:
            DamagedCheckpoint: the file is damaged.
        """
        state = load_checkpoint(self.path)
        if state is not None and "identity" not in state:
            raise DamagedCheckpoint(
                f"{self.path} does not say whose training it holds: delete it, and the task starts anew"
            )
        if state is None or state["identity"] == dict(self.identity):
            return state
        others = [key for key, value in self.identity.items() if state["identity"].get(key) != value]
        what = f" with other {' and '.join(others)}" if others else ""
        warnings.warn(
            f"{self.path} is of another training{what}, which is given up: this one starts anew", stacklevel=5
        )
        return None
