"""Files that are either complete or absent."""

import errno
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_RUST = re.compile(r"\(os error (\d+)\)")
"""How safetensors and tokenizers report an error of the disk."""

_ABANDONED = 24 * 60 * 60
"""Seconds without a change after which the writer of an unfinished file may be gone."""


@contextmanager
def written_whole(path: Path, of: Path | None = None) -> Iterator[Path]:
    """Yield a path beside `path` to write to, and rename it to `path` if everything went well.

    A process killed at any moment, or a disk that fills up, leaves the old `path` as it was. Processes and threads
    that write to the same `path` do not interfere: the last one to finish wins. What a killed process left beside
    `path` is removed by whoever writes there at least a day later.

    Args:
        path: the file; or a folder that is not there yet, of files that are written in this way, too.
        of: the path to name in errors, if users know `path` only as a part of it.

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
    path = path.absolute()  # even if the process changes directory
    with _removed_beside(path) as beside, _explained(of or path, beside):
        yield beside
        _flush(beside)
        beside.replace(path)


@contextmanager
def written_together(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path`, for a file of its name and others that it needs; then move them all out.

    `path` is moved last, so it is never there without the others. If one of them replaces an existing file, which an
    old `path` may need, the old `path` is removed first: a process killed at that moment leaves no `path`, rather than
    an old one with new files. Otherwise this is as `written_whole`, except that only one process at a time may write
    to `path`.

    Raises:
        OSError: the disk is full (the message says what to do) or cannot be written to.

    Examples:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "graph"
        >>> with written_together(target) as folder:
        ...     _ = (folder / "graph").write_text("done"), (folder / "graph.data").write_text("weights")
        >>> target.read_text(), sorted(p.name for p in target.parent.iterdir())
        ('done', ['graph', 'graph.data'])
    """
    path = path.absolute()
    with _removed_beside(path) as folder:
        with _explained(path, folder):
            folder.mkdir()
            yield folder
            others = [file for file in folder.iterdir() if file.name != path.name]
            for file in (*others, folder / path.name):
                _flush(file)
        if any(path.with_name(file.name).exists() for file in others):
            path.unlink(missing_ok=True)
        for file in (*others, folder / path.name):
            file.replace(path.with_name(file.name))


@contextmanager
def _removed_beside(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` that nobody else uses; whatever is there at the end is removed."""
    writer = os.getpid()
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    beside = path.with_name(f".{path.name}.{writer}.{threading.get_ident()}.part")
    try:
        yield beside
    finally:
        if os.getpid() == writer:  # a forked child that leaves the block must not remove the file
            _remove(beside)


@contextmanager
def _explained(path: Path, beside: Path) -> Iterator[None]:
    """Turn an error of the disk, while `beside` is written, into one that says what it means for `path`."""
    try:
        yield
    except Exception as error:
        number = _disk_error(error, beside)
        if number is None:
            raise
        what = "the disk is full" if number == errno.ENOSPC else os.strerror(number)
        advice = ". Free some space and run again" if number == errno.ENOSPC else ""
        raise OSError(number, f"{what}; {path} is as it was before{advice}") from error


def check_writable(path: Path) -> None:
    """Refuse a path that `written_whole` could not write to, before the work whose result goes there.

    Raises:
        OSError: its folder cannot be made or written to.

    Examples:
        >>> check_writable(Path("/dev/null/speed.json"))
        Traceback (most recent call last):
        FileExistsError: [Errno 17] File exists: '/dev/null'
    """
    with _removed_beside(path.absolute()) as beside, _explained(path, beside):
        beside.touch()


def check_folder(path: Path) -> None:
    """Refuse a user's path whose folder does not exist: a mistyped folder is not created.

    Examples:
        >>> check_folder(Path("/nowhere/model.onnx"))
        Traceback (most recent call last):
        FileNotFoundError: there is no folder /nowhere to write model.onnx into
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")


def version_of(path: Path) -> tuple[int, int] | None:
    """What is another one as soon as `path` is another file; `None` if there is none.

    Examples:
        >>> import tempfile
        >>> note = Path(tempfile.mkdtemp()) / "note.txt"
        >>> version_of(note) is None
        True
        >>> versions = set()
        >>> for text in ("same", "same"):
        ...     with written_whole(note) as beside:
        ...         _ = beside.write_text(text)
        ...     versions.add(version_of(note))
        >>> len(versions)
        2
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    if sys.platform == "win32":  # where a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(path: Path) -> None:
    """Remove what killed writers of `path` have left beside it.

    The file of a living writer is never removed. On this machine its process can be found, however long it sleeps. A
    process on another machine with the same disk, or in another container, cannot be found; but it will not have
    stopped for a day in the middle of a file, and no two clocks are a day apart.
    """
    left = re.compile(rf"\.{re.escape(path.name)}\.(\d{{1,9}})\.\d+\.part")
    with suppress(OSError), os.scandir(path.parent) as entries:  # one that cannot be listed may still be writable
        others = [(Path(entry), found) for entry in entries if (found := left.fullmatch(entry.name))]
        for other, found in others:
            with suppress(OSError):  # it is gone
                if time.time() - other.stat().st_mtime > _ABANDONED and not _runs(int(found[1])):
                    _remove(other)


def _runs(process: int) -> bool:
    """Whether there is a process of this number; unknown on Windows, where an open file cannot be removed anyway."""
    if sys.platform == "win32":
        return False  # os.kill would send it Ctrl-C
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        return True
    return True


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _disk_error(error: Exception, beside: Path) -> int | None:
    """The number of the disk's error, even if a library has wrapped it in an error of its own; `None` for others.

    Examples:
        >>> _disk_error(RuntimeError("I/O error: No space left on device (os error 28)"), Path("a")) == errno.ENOSPC
        True
        >>> _disk_error(FileNotFoundError(errno.ENOENT, "not there", "another file"), Path("a")) is None
        True
    """
    if isinstance(error, OSError):
        ours = error.filename is None or Path(str(error.filename)).is_relative_to(beside)
        return error.errno if ours else None
    if isinstance(error, RuntimeError) and isinstance(error.__context__, OSError):  # torch.save, on its way out
        return error.__context__.errno
    told = _RUST.search(str(error))
    if told and sys.platform == "win32":  # it has numbers of its own, which OSError translates
        return OSError(0, "", None, int(told[1])).errno
    return int(told[1]) if told else None


def _flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk before it is renamed."""
    if path.is_dir():
        return sync_folder(path)
    with path.open("rb+") as file:  # Windows flushes only files that are open for writing
        os.fsync(file.fileno())
