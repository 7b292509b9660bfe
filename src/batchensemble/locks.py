"""Work that only one process does at a time: locks that end with their process, however that ends."""

import errno
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt

    _BYTE = 1 << 62  # beyond the end of any file, since nobody can read a locked byte on Windows

    def _lock(file: int) -> None:
        os.lseek(file, _BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _unlock(file: int) -> None:
        os.lseek(file, _BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


_PAUSE = 0.05
"""Seconds between two attempts to take a lock."""

_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
"""Errors of disks that have no locks; the last one is that of NFS without its lock service."""

_HELD: set[BinaryIO] = set()
"""Files that `held` has locked."""


def _close_held() -> None:
    while _HELD:
        _HELD.pop().close()


if hasattr(os, "register_at_fork"):
    # a loader's worker lives on for seconds after its parent was killed, and the lock with whoever has the file open
    os.register_at_fork(after_in_child=_close_held)


class Busy(RuntimeError):
    """Another process is doing the same work."""


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Reserve the work named by `path` for this process; the lock ends with the process, however that ends.

    Raises:
        Busy: another process holds it, and `wait` is false.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "weights"
        >>> with locked(path), locked(path):
        ...     print("both at once")
        Traceback (most recent call last):
        batchensemble.locks.Busy: another process is working on ...
    """
    place = path.parent / ".locks" / f"{path.name}.lock"
    with held(place, f"another process is working on {path} (it holds {place}); wait for it to end", wait=wait):
        yield


@contextmanager
def held(place: Path, busy: str, *, wait: bool = False) -> Iterator[None]:
    """Lock a file that has no other purpose, as `locked` does; `busy` is the message of `Busy`."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("ab") as file:  # never removed: latecomers must lock the file that others have open
        number, taker = file.fileno(), os.getpid()
        take(number, busy, wait=wait)
        _HELD.add(file)
        try:
            yield
        finally:
            _HELD.discard(file)
            release(number, taker)


def take(file: int, busy: str, *, wait: bool = False) -> None:
    """Lock an open file for this process alone, until it is released or the process ends, however it ends.

    Args:
        file: its descriptor.
        busy: the message of `Busy`.
        wait: wait for whoever holds it, instead of raising.

    Raises:
        Busy: it is held, by another process or elsewhere in this one, and `wait` is false.
    """
    while True:
        try:
            return _lock(file)
        except (BlockingIOError, PermissionError):  # the second one on Windows, and on some network disks
            if not wait:
                raise Busy(busy) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return warnings.warn("this disk has no locks: nothing keeps a second process away", stacklevel=2)
        time.sleep(_PAUSE)


def release(file: int, taker: int) -> None:
    """Release what `take` locked; closing the file is not enough while a forked child has it open, too.

    In that child it does nothing: parent and child share one lock, and unlocking it in either frees it for both. A
    child that lets go of what it inherited, at the latest when it ends, must not release its parent's lock.

    Args:
        file: its descriptor, still open.
        taker: the process that locked it, by its `os.getpid()`.
    """
    if os.getpid() == taker:
        with suppress(OSError):  # a disk without locks
            _unlock(file)
