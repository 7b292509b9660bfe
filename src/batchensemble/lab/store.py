"""The folder of records; a run whose record is there is not repeated."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchensemble.disk import locked, written_whole
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import SCALES, Record, Run


class CorruptRecord(ValueError):
    """A record's file is damaged or was edited."""


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
        """Return the path of a run's JSON file, whether or not it exists."""
        return self.folder / f"{run.name}.json"

    def has(self, run: Run) -> bool:
        """Return whether the run has a record."""
        return self.path(run).exists()

    def get(self, run: Run) -> Record:
        """Return the record of a run.

        Raises:
            KeyError: the run has no record yet.
            CorruptRecord: its file is damaged.
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
        """Return the run's record, calling `work` if there is none; only one process at a time does the work.

        Raises:
            Busy: another process is working on this run, and `wait` is false.
        """
        if self.has(run):
            return self.get(run)
        with locked(self.path(run), wait=wait):
            if not self.has(run):
                self.put(work())
        return self.get(run)

    def all(self) -> Iterator[Record]:
        """Yield every record in the scales' folders, sorted by name; other files are ignored."""
        for scale in sorted(SCALES):
            for path in sorted((self.folder / scale).glob("*-*.json")):
                yield _read(path)


def document(record: Record) -> dict[str, Any]:
    """Return the content of a record's JSON file, without arrays."""
    return {"run": asdict(record.run), "metrics": record.metrics, "provenance": asdict(record.provenance)}


class _Arrays(Mapping[str, NDArray[Any]]):
    """The arrays of a record, loaded on first access."""

    def __init__(self, path: Path, names: list[str], sha256: str) -> None:
        self._path, self._names, self._sha256 = path, names, sha256

    @cached_property
    def _loaded(self) -> dict[str, NDArray[Any]]:
        if not self._path.exists() or _digest(self._path) != self._sha256:
            raise CorruptRecord(f"{self._path} is missing or damaged: delete its .json and run it again")
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


def _read(path: Path) -> Record:
    """Read a record's file and check that its content matches its name."""
    try:
        content = json.loads(path.read_text())
        run = Run(**content["run"])
        record = Record(
            run,
            dict(content["metrics"]),
            Provenance.read(content["provenance"]),
            _Arrays(path.with_suffix(".npz"), **content["arrays"]) if "arrays" in content else {},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptRecord(f"{path} is not a record ({error}): delete it and run it again") from error
    if path.stem != run.name.rpartition("/")[2]:
        raise CorruptRecord(f"{path} holds the record of {run.name}: its settings were changed after it was written")
    return record
