"""Files that are whole or not there, and work that one process does at a time."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

_RUST = re.compile(r"\(os error (\d+)\)")
"""How safetensors and tokenizers tell what the disk answered."""


class Busy(RuntimeError):
    """Another process is doing the same work."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Gives a path beside `path` to write to, and renames it to `path` when everything went well.

    A process killed at any moment, or a disk that fills up, leaves the former `path` as it was.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "note.txt"
        >>> with written_whole(target) as beside:
        ...     _ = beside.write_text("done")
        >>> target.read_text(), [p.name for p in target.parent.iterdir()]
        ('done', ['note.txt'])
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        _flush(beside)
        beside.replace(path)
    except Exception as error:
        number = _disk_error(error)
        if number is None:
            raise
        what = "the disk is full" if number == errno.ENOSPC else os.strerror(number)
        advice = ". Free some space and run again" if number == errno.ENOSPC else ""
        raise OSError(number, f"{what}; {path} is as it was before{advice}") from error
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Holds the work named by `path` for this process; the lock goes with the process, however it ends.

    Raises:
        Busy: another process holds it, and `wait` is false.
    """
    place = path.parent / ".locks" / f"{path.name}.lock"
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(place, timeout=-1 if wait else 0):
            yield
    except Timeout:
        raise Busy(f"another process is working on {path} (it holds {place}); wait for it to end") from None


def _disk_error(error: BaseException) -> int | None:
    """The number of what the disk answered, also where a library has put it into an error of its own.

    Example:
        >>> _disk_error(RuntimeError("I/O error: No space left on device (os error 28)")) == errno.ENOSPC
        True
    """
    if isinstance(error, OSError):
        return error.errno
    if isinstance(error, RuntimeError) and isinstance(error.__context__, OSError):  # torch.save, on its way out
        return error.__context__.errno
    told = _RUST.search(str(error))
    return int(told[1]) if told else None


def _flush(path: Path) -> None:
    """Brings a file to the disk before its name changes."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
