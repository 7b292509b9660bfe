"""The folder of records; a run whose record is there is not repeated."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchensemble.disk import written_whole
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import SCALES, Record, Run
from batchensemble.locks import locked

FORMAT = 1
"""The format of records' files, raised whenever older versions would misread them; files without one have the first."""

_KNOWN = {"run": {one.name for one in fields(Run)}, "arrays": {"names", "sha256"}}
"""Fields that say what a record is; one that this version does not know must not be ignored."""


class UnreadableRecord(ValueError):
    """A record cannot be read.

    Attributes:
        names: names of the runs whose records are to blame; empty if they are not known.
    """

    def __init__(self, message: str, *names: str) -> None:
        super().__init__(message)
        self.names = names


class CorruptRecord(UnreadableRecord):
    """A record's file is damaged or was edited."""


class NewerRecord(UnreadableRecord):
    """A record was written by a newer version, and there is nothing wrong with it."""


Skipped = Callable[[UnreadableRecord], object]
"""Is told of every record that is left out because it cannot be read."""


@dataclass(frozen=True)
class Store:
    """A folder of records: a JSON file for each, named after its run, and an `.npz` next to it for any arrays.

    Examples:
        >>> import tempfile
        >>> store = Store(Path(tempfile.mkdtemp()))
        >>> run = Run("counting", {"to": 3}, "smoke")
        >>> record = store.obtain(run, lambda: Record(run, {"sum": 6}, Provenance.now()))
        >>> store.has(run), store.get(run).metrics
        (True, {'sum': 6})
    """

    folder: Path

    def path(self, run: Run) -> Path:
        """The path of a run's JSON file, whether or not it exists."""
        return self.folder / f"{run.name}.json"

    def has(self, run: Run) -> bool:
        """Whether the run has a record."""
        return self.path(run).exists()

    def get(self, run: Run) -> Record:
        """The record of a run.

        Raises:
            KeyError: the run has no record yet.
            UnreadableRecord: its file is damaged, or was written by a newer version.
        """
        if not self.has(run):
            raise KeyError(f"no record of {run.name} in {self.folder}: run it first")
        return _read(self.path(run))

    def put(self, record: Record) -> None:
        """Write a record, arrays first: a JSON file that exists belongs to a complete record."""
        path = self.path(record.run)
        content = document(record)
        if record.arrays:
            content["arrays"] = _write_arrays(path.with_suffix(".npz"), record.arrays)
        with written_whole(path) as beside:
            beside.write_text(json.dumps(content, indent=1) + "\n")

    def obtain(self, run: Run, work: Callable[[], Record], *, wait: bool = False) -> Record:
        """The run's record, made by `work` if there is none; only one process at a time does the work.

        Raises:
            Busy: another process is working on this run, and `wait` is false.
        """
        if self.has(run):
            return self.get(run)
        with locked(self.path(run), wait=wait):
            if not self.has(run):
                self.put(work())
        return self.get(run)

    def all(self, skipped: Skipped | None = None) -> Iterator[Record]:
        """Every record in the scales' folders, sorted by name; other files are ignored.

        Args:
            skipped: is told of records that cannot be read, which are left out; without it, they are errors.

        Raises:
            UnreadableRecord: a record cannot be read, and `skipped` is not given.
        """
        folders = (self.folder / scale for scale in sorted(SCALES))
        yield from _readable((path for folder in folders for path in sorted(folder.glob("*-*.json"))), skipped)

    def some(self, runs: Iterable[Run], skipped: Skipped | None = None) -> Iterator[Record]:
        """The records of those runs that have one, like `all`."""
        yield from _readable((self.path(run) for run in runs if self.has(run)), skipped)


def document(record: Record) -> dict[str, Any]:
    """The content of a record's JSON file, without arrays."""
    content = {"run": asdict(record.run), "metrics": record.metrics, "provenance": asdict(record.provenance)}
    return {"format": FORMAT, **content}


class _Arrays(Mapping[str, NDArray[Any]]):
    """The arrays of a record, loaded on first access."""

    def __init__(self, path: Path, names: list[str], sha256: str) -> None:
        self._path, self._names, self._sha256 = path, names, sha256

    @cached_property
    def _loaded(self) -> dict[str, NDArray[Any]]:
        if not self._path.exists() or _digest(self._path) != self._sha256:
            told = f"{self._path} is missing or damaged: delete its .json and run it again"
            raise CorruptRecord(told, _name(self._path))
        with np.load(self._path, allow_pickle=False) as file:
            return dict(file)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(f"{self._path} has no array {name!r}, only {', '.join(self._names)}")
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Write the `.npz` and return its entry for the JSON file."""
    small: dict[str, Any] = {n: a.astype(np.float16) if a.dtype.kind == "f" else a for n, a in arrays.items()}
    with written_whole(path) as beside, beside.open("wb") as file:
        np.savez_compressed(file, **small)
    return {"names": list(small), "sha256": _digest(path)}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _name(path: Path) -> str:
    """The name of the run whose file this is."""
    return f"{path.parent.name}/{path.stem}"


def _readable(paths: Iterable[Path], skipped: Skipped | None) -> Iterator[Record]:
    for path in paths:
        try:
            record = _read(path)
        except UnreadableRecord as error:
            if skipped is None:
                raise
            skipped(error)
        else:
            yield record


def _read(path: Path) -> Record:
    """Read a record's file and check that its content matches its name."""
    try:
        content = json.loads(path.read_text())
        if newer := _beyond_this_version(content):
            told = f"{path} was written by a newer version of batchensemble ({newer}): update this one to read it"
            raise NewerRecord(told, _name(path))
        run = Run(**content["run"])
        record = Record(
            run,
            dict(content["metrics"]),
            Provenance.read(content["provenance"]),
            _Arrays(path.with_suffix(".npz"), **content["arrays"]) if "arrays" in content else {},
        )
    except UnreadableRecord:
        raise
    except OSError as error:
        raise UnreadableRecord(f"{path} cannot be read: {error.strerror}", _name(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptRecord(f"{path} is not a record ({error}): delete it and run it again", _name(path)) from error
    if path.stem != run.name.rpartition("/")[2]:
        told = f"{path} holds the record of {run.name}: its settings were changed after it was written"
        raise CorruptRecord(told, _name(path))
    return record


def _beyond_this_version(content: Mapping[str, Any]) -> str:
    """Say what only a newer version can have written; empty if there is nothing."""
    if content.get("format", 1) > FORMAT:
        return f"format {content['format']}, here {FORMAT}"
    unknown = [name for part, known in _KNOWN.items() for name in content.get(part, {}) if name not in known]
    return f"unknown here: {', '.join(unknown)}" if unknown else ""
