"""The files behind the problems: found on this machine or downloaded, and checked before use."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..archive import check, download
from ..location import data_root
from .game import Array, Problem, one_hot
from .problems import Classification, Financial, Jester, Linear, Mushroom, Wheel

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_BENCHMARK = "https://storage.googleapis.com/bandits_datasets"


@dataclass(frozen=True)
class Source:
    """A file of a problem.

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
        """Returns the file in `root/bandits` or `root`, downloading it to the former if it is in neither."""
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


def read_mushroom(path: Path) -> Mushroom:
    """Reads 8124 mushrooms: the class and 22 attributes, one letter each."""
    rows = _table(path, 8124, 23, dtype="U1", delimiter=",")
    return Mushroom(one_hot(rows[:, 1:]), rows[:, 0] == "e")


def read_statlog(path: Path) -> Classification:
    """Reads 43,500 measurements of a shuttle: nine numbers and a class from 1 to 7."""
    rows = _table(path, 43_500, 10)
    return Classification(rows[:, :-1], rows[:, -1].astype(np.int64) - 1, arms=7, name="statlog")


def read_financial(path: Path) -> Financial:
    """Reads 3713 days of 21 stocks, with names in the first line."""
    return Financial(_table(path, 3713, 21, skiprows=1))


def read_jester(path: Path) -> Jester:
    """Reads ratings of 40 jokes by 19,181 users: the benchmark's `.npy`, or hundredths in an `.npz`."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            ratings = loaded if isinstance(loaded, np.ndarray) else loaded["ratings_x100"] / np.float32(100)
    except Exception as error:  # numpy raises a different error for every kind of damage
        raise ValueError(f"{path}: damaged or truncated ({error})") from error
    return Jester(_shaped(path, ratings.astype(np.float32), 19_181, 40))


def read_adult(path: Path) -> Classification:
    """Reads people and their occupation, one of 14; `adult.test` beside it is added.

    There are 92 features. The benchmark counts 94, because the test file writes the two incomes with a full stop.
    """
    people, test = read_people(path), path.with_name("adult.test")
    if path.name == "adult.data" and test.is_file():
        people = np.concatenate([people, read_people(test)])
    features, labels = encode_people(people, OCCUPATION)
    return Classification(features, labels, arms=14, name="adult")


OCCUPATION, INCOME = 6, 14  # columns of the census


def read_people(path: Path) -> NDArray[np.str_]:
    """Reads a file of the census, 15 columns of text, without rows that have unknowns."""
    written = _table(path, None, 15, dtype="U64", delimiter=",", comments="|")
    people: NDArray[np.str_] = np.char.strip(np.char.strip(written), ".")
    known: NDArray[np.str_] = people[(people != "?").all(1)]
    return known


def encode_people(people: NDArray[np.str_], target: int) -> tuple[Array, NDArray[np.int64]]:
    """Returns all columns but one as features, `(rows, features)`, words one-hot, and that one as labels `(rows,)`."""
    numbers, words = [0, 2, 4, 10, 11, 12], [1, 3, 5, OCCUPATION, 7, 8, 9, 13, INCOME]
    words.remove(target)
    features = np.concatenate([people[:, numbers].astype(np.float32), one_hot(people[:, words])], 1)
    return features, np.unique(people[:, target], return_inverse=True)[1]


def read_covertype(path: Path) -> Classification:
    """Reads forest cover types: 54 numbers and a class from 1 to 7."""
    rows = _table(path, 581_012, 55, delimiter=",")
    return Classification(rows[:, :-1], rows[:, -1].astype(np.int64) - 1, arms=7, name="covertype")


SOURCES: dict[str, tuple[Source, Callable[[Path], Problem]]] = {
    "mushroom": (
        Source(
            "agaricus-lepiota.data",
            "08abc775ae2a79b402cc75f3a29e4b7d",
            f"{_UCI}/mushroom/agaricus-lepiota.data",
            others=("mushroom.data",),
        ),
        read_mushroom,
    ),
    "statlog": (Source("shuttle.trn", "53cbd0c3ae4986fdf48b0570978b92bc", f"{_BENCHMARK}/shuttle.trn"), read_statlog),
    "financial": (
        Source("raw_stock_contexts", "164743585b47ee35f3f280e286d2db85", f"{_BENCHMARK}/raw_stock_contexts"),
        read_financial,
    ),
    "jester": (
        Source(
            "jester_part1_40jokes.npz",
            others=("jester_data_40jokes_19181users.npy",),
            advice="put the benchmark's jester_data_40jokes_19181users.npy there, or build it from part 1 of Jester 1: "
            "the 40 jokes that most users rated, and the users who rated all of them",
        ),
        read_jester,
    ),
    "adult": (
        Source("adult.data", "5d7c39d7b8804f071cdd1f2a7c460872", f"{_UCI}/adult/adult.data", others=("adult.full",)),
        read_adult,
    ),
    "covertype": (
        Source("covtype.data", advice=f"unpack {_UCI}/covtype/covtype.data.gz there"),
        read_covertype,
    ),
}
PROBLEMS = (*SOURCES, "wheel", "linear")


def load_problem(name: str, root: str | Path | None = None, delta: float = 0.95) -> Problem:
    """Loads a problem by name, from `root` if it needs a file.

    Args:
        name: `mushroom`, `statlog`, `financial`, `jester`, `adult`, `covertype`, `wheel` or `linear`.
        root: folder of the data sets; see `data_root`.
        delta: the wheel's delta.

    Raises:
        FileNotFoundError: its file is missing and cannot be downloaded.
        ValueError: there is no such problem, or its file is damaged.

    Examples:
        >>> game = load_problem("wheel", delta=0.5).play(100, np.random.default_rng(0))
        >>> game.contexts.shape, game.rewards.shape, bool((game.optimal >= 1).all())
        ((100, 2), (100, 5), True)
    """
    if name == "wheel":
        return Wheel(delta)
    if name == "linear":
        return Linear()
    if name not in SOURCES:
        raise ValueError(f"problem must be one of {', '.join(PROBLEMS)}; got {name!r}")
    source, read = SOURCES[name]
    return read(source.find(root))


def _table(path: Path, rows: int | None, columns: int, **options: Any) -> NDArray[Any]:
    """Reads a text file and checks its numbers of rows and columns."""
    try:
        found = np.loadtxt(path, **{"dtype": np.float32, **options}, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path}: damaged or truncated ({error})") from error
    return _shaped(path, found, rows, columns)


def _shaped(path: Path, found: NDArray[Any], rows: int | None, columns: int) -> NDArray[Any]:
    if found.ndim != 2 or found.shape[1] != columns or (rows is not None and len(found) != rows):
        expected = f"{rows if rows is not None else 'some'} rows of {columns}"
        raise ValueError(f"{path}: damaged or truncated (expected {expected}, got {' x '.join(map(str, found.shape))})")
    return found
