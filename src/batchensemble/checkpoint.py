"""The state of a training in one file: replaced whole, and read whole or refused."""

import io
from pathlib import Path
from typing import Any

import torch

from batchensemble.disk import written_whole


class DamagedCheckpoint(ValueError):
    """A checkpoint is damaged, or does not match what lies beside it."""


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Replace the file; a process killed at any moment, or a full disk, leaves the previous one as it was.

    Args:
        path: the file; its folder is made if there is none.
        state: tensors and plain values.

    Raises:
        OSError: the disk is full (the message says what to do) or cannot be written to.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "last.pt")
        >>> load_checkpoint(path) is None
        True
        >>> save_checkpoint(path, {"epoch": 3, "weight": torch.ones(2)})
        >>> load_checkpoint(path)
        {'epoch': 3, 'weight': tensor([1., 1.])}
    """
    with written_whole(path) as beside, beside.open("wb") as file:
        torch.save(state, file)


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> dict[str, Any] | None:
    """The state that was saved, its tensors on `device`; `None` if there is no file.

    Raises:
        DamagedCheckpoint: the file's bytes are not those of a checkpoint.
        OSError: the disk does not give the bytes.
        MemoryError: there is no room for them; torch raises errors of its own for that, too.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return dict(torch.load(io.BytesIO(content), map_location=device, weights_only=True))
    except Exception as error:  # an unpickler stumbles over foreign bytes in many ways
        if _is_lack_of_memory(error):
            raise
        raise DamagedCheckpoint(f"{path} is damaged: delete it, and its training starts anew") from error


def _is_lack_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)  # torch has no class for the CPU
