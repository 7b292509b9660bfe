"""The files behind the problems, and how they are read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from batchensemble.lab.data.bandits.game import Problem
from batchensemble.lab.data.bandits.problems import Classification, Financial, Jester, Linear, Mushroom, Wheel
from batchensemble.lab.data.rows import (
    BENCHMARK,
    CENSUS,
    OCCUPATION,
    SHUTTLE,
    UCI,
    Source,
    encode_people,
    one_hot,
    read_people,
    read_rows,
    read_shuttle,
    shaped,
)


def read_mushroom(path: Path) -> Mushroom:
    """Read 8124 mushrooms: the class and 22 attributes, one letter each."""
    rows = read_rows(path, 8124, 23, dtype="U1", delimiter=",")
    return Mushroom(one_hot(rows[:, 1:]), rows[:, 0] == "e")


def read_statlog(path: Path) -> Classification:
    """Read the measurements of a shuttle and its state, one of 7."""
    return Classification(*read_shuttle(path), arms=7)


def read_financial(path: Path) -> Financial:
    """Read 3713 days of 21 stocks, with names in the first line."""
    return Financial(read_rows(path, 3713, 21, skiprows=1))


def read_jester(path: Path) -> Jester:
    """Read ratings of 40 jokes by 19,181 users: the benchmark's `.npy`, or hundredths in an `.npz`."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            ratings = loaded if isinstance(loaded, np.ndarray) else loaded["ratings_x100"] / np.float32(100)
    except Exception as error:  # numpy raises a different error for every kind of damage
        raise ValueError(f"{path}: damaged or truncated ({error})") from error
    return Jester(shaped(path, ratings.astype(np.float32), 19_181, 40))


def read_adult(path: Path) -> Classification:
    """Read people and their occupation, one of 14; `adult.test` beside it is added.

    There are 92 features. The benchmark counts 94, because the test file writes the two incomes with a full stop.
    """
    people, test = read_people(path), path.with_name("adult.test")
    if path.name == "adult.data" and test.is_file():
        people = np.concatenate([people, read_people(test)])
    features, labels = encode_people(people, OCCUPATION)
    return Classification(features, labels, arms=14)


def read_covertype(path: Path) -> Classification:
    """Read forest cover types: 54 numbers and a class from 1 to 7."""
    rows = read_rows(path, 581_012, 55, delimiter=",")
    return Classification(rows[:, :-1], rows[:, -1].astype(np.int64) - 1, arms=7)


SOURCES: dict[str, tuple[Source, Callable[[Path], Problem]]] = {
    "mushroom": (
        Source(
            "agaricus-lepiota.data",
            "08abc775ae2a79b402cc75f3a29e4b7d",
            f"{UCI}/mushroom/agaricus-lepiota.data",
            others=("mushroom.data",),
        ),
        read_mushroom,
    ),
    "statlog": (SHUTTLE, read_statlog),
    "financial": (
        Source("raw_stock_contexts", "164743585b47ee35f3f280e286d2db85", f"{BENCHMARK}/raw_stock_contexts"),
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
    "adult": (CENSUS, read_adult),
    "covertype": (
        Source("covtype.data", advice=f"unpack {UCI}/covtype/covtype.data.gz there"),
        read_covertype,
    ),
}
PROBLEMS = (*SOURCES, "wheel", "linear")


def load_problem(name: str, root: str | Path | None = None, delta: float = 0.95) -> Problem:
    """Load a problem by name, from `root` if it needs a file.

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
