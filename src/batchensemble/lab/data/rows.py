"""Rows of published files: found on this machine or downloaded, and checked before use."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.data.archive import check, download
from batchensemble.lab.data.location import data_root

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
BENCHMARK = "https://storage.googleapis.com/bandits_datasets"
OCCUPATION, INCOME = 6, 14  # columns of the census
Array = NDArray[np.floating[Any]]
Labelled = tuple[Array, NDArray[np.int64]]
"""Features `(rows, features)` and a label for every row."""


@dataclass(frozen=True)
class Source:
    """A published file.

    Args:
        name: name of the file.
        md5: checksum of the published file, if known.
        url: where it is published, if it can be downloaded as it is.
        others: other names under which it circulates; their content is checked only by its shape.
        advice: how to get it, if it cannot be downloaded.
    """

    name: str
    md5: str = ""
    url: str = ""
    others: tuple[str, ...] = ()
    advice: str = ""

    def find(self, root: str | Path | None) -> Path:
        """The file in `root/bandits` or `root`; downloaded to the former if it is in neither."""
        folder = data_root(root)
        for path in (place / name for name in (self.name, *self.others) for place in (folder / "bandits", folder)):
            if path.is_file():
                if self.md5 and path.name == self.name:
                    check(path, self.md5)
                return path
        path = folder / "bandits" / self.name
        if not (self.url and self.md5):
            raise FileNotFoundError(f"{path} is not there and cannot be fetched; {self.advice}")
        download(self.url, self.md5, path)
        return path


CENSUS = Source("adult.data", "5d7c39d7b8804f071cdd1f2a7c460872", f"{UCI}/adult/adult.data", others=("adult.full",))
SHUTTLE = Source("shuttle.trn", "53cbd0c3ae4986fdf48b0570978b92bc", f"{BENCHMARK}/shuttle.trn")


def read_people(path: Path) -> NDArray[np.str_]:
    """Read a file of the census, 15 columns of text, without rows that have unknowns."""
    written = read_rows(path, None, 15, dtype="U64", delimiter=",", comments="|")
    people: NDArray[np.str_] = np.char.strip(np.char.strip(written), ".")
    known: NDArray[np.str_] = people[(people != "?").all(1)]
    return known


def encode_people(people: NDArray[np.str_], target: int) -> Labelled:
    """All columns but one as features, `(rows, features)`, words one-hot, and that one as labels `(rows,)`."""
    numbers, words = [0, 2, 4, 10, 11, 12], [1, 3, 5, OCCUPATION, 7, 8, 9, 13, INCOME]
    words.remove(target)
    features = np.concatenate([people[:, numbers].astype(np.float32), one_hot(people[:, words])], 1)
    return features, np.unique(people[:, target], return_inverse=True)[1]


def read_shuttle(path: Path) -> Labelled:
    """Read 43,500 measurements of a shuttle: nine numbers and a class from 1 to 7, as labels from 0."""
    rows = read_rows(path, 43_500, 10)
    return rows[:, :-1], rows[:, -1].astype(np.int64) - 1


def read_rows(path: Path, rows: int | None, columns: int, **options: Any) -> NDArray[Any]:
    """Read a text file and check its numbers of rows and columns."""
    try:
        found = np.loadtxt(path, **{"dtype": np.float32, **options}, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path}: damaged or truncated ({error})") from error
    return shaped(path, found, rows, columns)


def shaped(path: Path, found: NDArray[Any], rows: int | None, columns: int) -> NDArray[Any]:
    """Check numbers of rows and columns, and return what was read.

    Raises:
        ValueError: they are not as expected; the message names the file.
    """
    if found.ndim != 2 or found.shape[1] != columns or (rows is not None and len(found) != rows):
        expected = f"{rows if rows is not None else 'some'} rows of {columns}"
        raise ValueError(f"{path}: damaged or truncated (expected {expected}, got {' x '.join(map(str, found.shape))})")
    return found


def one_hot(columns: NDArray[np.str_]) -> Array:
    """Encode every column of categories as indicator columns, with categories in alphabetical order.

    Examples:
        >>> one_hot(np.array([["a", "x"], ["b", "x"]])).tolist()
        [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    parts = []
    for column in columns.T:
        names, places = np.unique(column, return_inverse=True)
        parts.append(np.eye(len(names), dtype=np.float32)[places])
    return np.concatenate(parts, 1)
