"""Files that are whole or not there, and work that one process does at a time."""

import errno
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    _BYTE = 1 << 62  # nobody can read a locked byte there, so it is one behind every file's end

    def _lock(file: int) -> None:
        os.lseek(file, _BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _unlock(file: int) -> None:
        os.lseek(file, _BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

    def _runs(process: int) -> bool:
        return False  # os.kill would send it Ctrl-C; and there a file that is being written cannot be removed

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)

    def _runs(process: int) -> bool:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # somebody else's
            return True
        return True


_RUST = re.compile(r"\(os error (\d+)\)")
"""How safetensors and tokenizers tell what the disk answered."""

_PAUSE = 0.05
"""Seconds between two looks at a lock."""

_ABANDONED = 24 * 60 * 60
"""Seconds without a change after which a file that is being written may be one whose writer is gone."""


_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
"""What disks answer that have no locks; the last one is NFS, where the service for them does not run."""


class Busy(RuntimeError):
    """Another process is doing the same work."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Gives a path beside `path` to write to, and renames it to `path` when everything went well.

    A process killed at any moment, or a disk that fills up, leaves the former `path` as it was. Processes and threads
    that write the same `path` do not meet: the last one to end has it. What a killed process had begun beside `path`
    is removed by who writes there a day later.

    Raises:
        OSError: the disk is full (the message says what to do) or cannot be written to.

    Examples:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "note.txt"
        >>> with written_whole(target) as beside:
        ...     _ = beside.write_text("done")
        >>> target.read_text(), [p.name for p in target.parent.iterdir()]
        ('done', ['note.txt'])
    """
    path, writer = path.absolute(), os.getpid()  # wherever the process goes meanwhile
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        yield beside
        _flush(beside)
        beside.replace(path)
    except Exception as error:
        number = _disk_error(error, beside)
        if number is None:
            raise
        what = "the disk is full" if number == errno.ENOSPC else os.strerror(number)
        advice = ". Free some space and run again" if number == errno.ENOSPC else ""
        raise OSError(number, f"{what}; {path} is as it was before{advice}") from error
    finally:
        if os.getpid() == writer:  # a forked child that leaves the block leaves the file
            beside.unlink(missing_ok=True)


def check_folder(path: Path) -> None:
    """Refuses a path that a user gave where its folder is not there: a mistyped one is not made.

    Examples:
        >>> check_folder(Path("/nowhere/model.onnx"))
        Traceback (most recent call last):
        FileNotFoundError: there is no folder /nowhere to write model.onnx into
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")


def sync_folder(folder: Path) -> None:
    """Brings the names in a folder to the disk."""
    if sys.platform == "win32":  # where a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Holds the work named by `path` for this process; the lock goes with the process, however it ends.

    Raises:
        Busy: another process holds it, and `wait` is false.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "weights"
        >>> with locked(path), locked(path):
        ...     print("both at once")
        Traceback (most recent call last):
        batchensemble.disk.Busy: another process is working on ...
    """
    place = path.parent / ".locks" / f"{path.name}.lock"
    with held(place, f"another process is working on {path} (it holds {place}); wait for it to end", wait=wait):
        yield


@contextmanager
def held(place: Path, busy: str, *, wait: bool = False) -> Iterator[None]:
    """Holds a file that is there for nothing else, as `locked` does; `busy` is what `Busy` says."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("ab") as file:  # left there: who waits has it open, and who comes later must meet them
        take(file.fileno(), busy, wait=wait)
        taker = os.getpid()
        try:
            yield
        finally:
            release(file.fileno(), taker)


def take(file: int, busy: str, *, wait: bool = False) -> None:
    """Takes an open file for this process alone, until it is released or the process ends, however it ends.

    Args:
        file: its descriptor.
        busy: what `Busy` says.
        wait: for whoever has it, instead of raising.

    Raises:
        Busy: somebody has it, another process or another place of this one, and `wait` is false.
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
    """Gives back what `take` took; to close the file is not enough while a forked child has it open, too.

    In that child it does nothing: parent and child have one lock between them, and whoever unlocks it frees it for
    both. A child that lets go of what it inherited, at its end at the latest, must not let others in on its parent.

    Args:
        file: its descriptor, still open.
        taker: the process that took it, as `os.getpid()` said there.
    """
    if os.getpid() == taker:
        with suppress(OSError):  # a disk without locks
            _unlock(file)


def _sweep(path: Path) -> None:
    """Removes what killed writers of `path` have left beside it.

    Never what a living one writes: on this machine its process is there, however long it sleeps. A process of another
    machine on the same disk, or of another container, cannot be asked for; but it has not stopped for a day in the
    middle of a file, and no two clocks are a day apart.
    """
    left = re.compile(rf"\.{re.escape(path.name)}\.(\d{{1,9}})\.\d+\.part")
    with suppress(OSError):  # who may not look around may still write
        others = [(other, found) for other in path.parent.iterdir() if (found := left.fullmatch(other.name))]
        for other, found in others:
            with suppress(OSError):  # one that is gone, or a folder
                if time.time() - other.stat().st_mtime > _ABANDONED and not _runs(int(found[1])):
                    other.unlink()


def _disk_error(error: Exception, beside: Path) -> int | None:
    """The number of what the disk answered, also where a library has put it into an error of its own.

    Examples:
        >>> _disk_error(RuntimeError("I/O error: No space left on device (os error 28)"), Path("a")) == errno.ENOSPC
        True
        >>> _disk_error(FileNotFoundError(errno.ENOENT, "not there", "another file"), Path("a")) is None
        True
    """
    if isinstance(error, OSError):
        return error.errno if error.filename is None or str(error.filename) == str(beside) else None
    if isinstance(error, RuntimeError) and isinstance(error.__context__, OSError):  # torch.save, on its way out
        return error.__context__.errno
    told = _RUST.search(str(error))
    if told and sys.platform == "win32":  # which has numbers of its own, and OSError knows them
        return OSError(0, "", None, int(told[1])).errno
    return int(told[1]) if told else None


def _flush(path: Path) -> None:
    """Brings a file to the disk before its name changes."""
    with path.open("rb+") as file:  # Windows flushes only what may be written
        os.fsync(file.fileno())
