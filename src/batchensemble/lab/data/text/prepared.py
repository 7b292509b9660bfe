"""A parallel text as numbers in memory-mapped files: prepared once, available at once afterwards."""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.data.archive import publish
from batchensemble.lab.data.text.parallel import Pair, ParallelText, Tally
from batchensemble.lab.data.text.vocabulary import PAD, Vocabulary

CHUNK = 20_000  # pairs tokenised at a time
SIDES = ("source", "target")
UNFINISHED = ".preparing-"


@dataclass(frozen=True, eq=False)
class Tokens:
    """Sentences of different lengths as one array.

    Args:
        numbers: all tokens, one sentence after another.
        starts: where each sentence begins; one entry more than there are sentences.

    Examples:
        >>> tokens = Tokens(np.array([5, 6, 1, 7, 1]), np.array([0, 3, 5]))
        >>> tokens.padded(np.array([1, 0]), width=4)
        array([[7, 1, 0, 0],
               [5, 6, 1, 0]])
    """

    numbers: NDArray[np.integer]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens in every sentence, including its end."""
        return np.diff(self.starts)

    def padded(self, rows: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """The sentences of some rows, padded to `(rows, width)`."""
        begins, ends = self.starts[rows], self.starts[rows + 1]
        places = begins[:, None] + np.arange(width)
        real = places < ends[:, None]
        return np.where(real, self.numbers[np.where(real, places, begins[:, None])], PAD).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A parallel text, ready for a network.

    Args:
        folder: where it is kept.
        source: sentences in the one language.
        target: the same sentences in the other.
        tally: what became of the lines.
        digest: digest of the tokens of both sides; empty if it was not kept.
    """

    folder: Path
    source: Tokens
    target: Tokens
    tally: Tally
    digest: str = ""

    def __len__(self) -> int:
        return len(self.source)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of the longer side of every pair."""
        return np.maximum(self.source.lengths, self.target.lengths)

    def text(self, side: str) -> list[str]:
        """The original sentences of `source` or `target`, if they were kept."""
        return (self.folder / f"{side}.txt").read_bytes().decode().split("\n")[:-1]


def prepare(
    text: ParallelText, vocabulary: Vocabulary, folder: Path, longest: int, *, keep_text: bool = False
) -> Prepared:
    """Write `text` to `folder`, completely or not at all, unless it is there already.

    Args:
        text: the pairs.
        vocabulary: vocabulary of both languages.
        folder: its name must identify everything that its content depends on.
        longest: most tokens in a sentence, including its end; pairs with a longer one are left out and counted.
        keep_text: whether to keep the sentences themselves, too: for references, not for training data.

    Raises:
        ValueError: the two sides do not have the same number of lines, or no pair is left.
        OSError: the text cannot be read, or the disk is full.
    """
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=folder.parent) as temporary:
            try:
                _write(text, vocabulary, Path(temporary) / "text", longest, keep_text)
            except OSError as error:
                raise OSError(f"{folder} cannot be prepared, and nothing of it is left ({error})") from error
            publish(Path(temporary) / "text", folder)
    return load_prepared(folder)


def load_prepared(folder: Path) -> Prepared:
    """Load what `prepare` wrote; token data is read only when it is used."""
    about = json.loads((folder / "about.json").read_text())
    source, target = (
        Tokens(
            np.memmap(folder / f"{side}.tokens", mode="r", dtype=about["dtype"]),
            np.load(folder / f"{side}.starts.npy", mmap_mode="r"),
        )
        for side in SIDES
    )
    return Prepared(folder, source, target, Tally(**about["tally"]), about.get("digest", ""))


def _write(text: ParallelText, vocabulary: Vocabulary, folder: Path, longest: int, keep_text: bool) -> None:
    folder.mkdir()
    dtype = np.uint16 if len(vocabulary) <= 2**16 else np.uint32
    too_long = 0
    with _Side(folder, "source", dtype, keep_text) as source, _Side(folder, "target", dtype, keep_text) as target:
        for pairs in _chunks(text):
            rows = [vocabulary.encode(side) for side in zip(*pairs, strict=True)]
            for pair, one, other in zip(pairs, *rows, strict=True):
                if max(len(one), len(other)) > longest:
                    too_long += 1
                    continue
                source.add(pair[0], one)
                target.add(pair[1], other)
    tally = Tally(**asdict(text.tally) | {"kept": text.tally.kept - too_long, "too_long": too_long})
    if not tally.kept:
        raise ValueError(f"no sentence pair is left to learn from: {tally}")
    about = {"dtype": np.dtype(dtype).name, "tally": asdict(tally), "digest": f"{source.digest}, {target.digest}"}
    (folder / "about.json").write_text(json.dumps(about))


def _chunks(text: Iterable[Pair]) -> Iterator[list[Pair]]:
    pairs = iter(text)
    while chunk := list(islice(pairs, CHUNK)):
        yield chunk


class _Side:
    """Writes the files of one language."""

    def __init__(self, folder: Path, name: str, dtype: type[np.integer], keep_text: bool) -> None:
        self._folder, self._name, self._dtype, self._keep_text = folder, name, dtype, keep_text
        self._lengths: list[int] = []
        self._sha256 = hashlib.sha256()
        self._open = ExitStack()

    @property
    def digest(self) -> str:
        return self._sha256.hexdigest()

    def __enter__(self) -> Self:
        self._tokens = self._open.enter_context((self._folder / f"{self._name}.tokens").open("wb"))
        if self._keep_text:
            self._text = self._open.enter_context((self._folder / f"{self._name}.txt").open("wb"))
        return self

    def add(self, text: str, numbers: Sequence[int]) -> None:
        content = np.asarray(numbers, self._dtype).tobytes()
        self._tokens.write(content)
        self._sha256.update(content)
        self._lengths.append(len(numbers))
        if self._keep_text:
            self._text.write(f"{text}\n".encode())

    def __exit__(self, *_: object) -> None:
        self._open.close()
        starts = np.concatenate([[0], np.cumsum(self._lengths, dtype=np.int64)])
        np.save(self._folder / f"{self._name}.starts.npy", starts)
