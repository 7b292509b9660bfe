"""The studies' corpora by name: where their texts come from, and their vocabularies."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from batchensemble.disk import written_whole
from batchensemble.lab.data import data_root
from batchensemble.lab.data.text import (
    ParallelText,
    Prepared,
    Sentences,
    ToyLanguage,
    Vocabulary,
    prepare,
    text_file,
    wmt,
)
from batchensemble.lab.data.text.prepared import UNFINISHED
from batchensemble.lab.data.text.vocabulary import Kind
from batchensemble.lab.records import content_key
from batchensemble.locks import locked

Split = Literal["train", "valid", "test"]
Source = Callable[[Path], ParallelText]
"""Maps the folder of the data sets to a text."""


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus in three parts.

    Args:
        parts: training, validation and test text.
        kind: kind of vocabulary.
        size: size of the vocabulary.
        longest: most tokens in a sentence.
    """

    parts: Mapping[Split, Source]
    kind: Kind
    size: int
    longest: int


@dataclass(frozen=True, eq=False)
class TextData:
    """A corpus, ready for a network."""

    vocabulary: Vocabulary
    train: Prepared
    valid: Prepared
    test: Prepared

    @property
    def tallies(self) -> dict[str, dict[str, int]]:
        """What became of the lines of each part."""
        return {part: asdict(getattr(self, part).tally) for part in ("train", "valid", "test")}

    @property
    def digest(self) -> str:
        """A digest of the vocabulary and all three texts, wherever they are stored."""
        return content_key([self.vocabulary.digest, *(text.digest for text in (self.train, self.valid, self.test))])


def load_text(name: str, root: Path | None, work: Path) -> TextData:
    """Load a corpus by name: prepared in `work` the first time, memory-mapped from there afterwards.

    Raises:
        ValueError: there is no corpus of that name, or its sides do not match.
        FileNotFoundError: its files are missing.
    """
    if name not in CORPORA:
        raise ValueError(f"data must be one of {', '.join(CORPORA)}; got {name!r}")
    corpus = CORPORA[name]
    texts = {part: source(data_root(root)) for part, source in corpus.parts.items()}
    about = [corpus.kind, corpus.size, corpus.longest, *(text.stamp for text in texts.values())]
    folder = work / "text" / f"{name}-{content_key(about)}"
    with locked(folder, wait=True):
        for left in folder.glob(f"{UNFINISHED}*"):  # left by a process that was killed
            shutil.rmtree(left)
        vocabulary = _vocabulary(corpus, texts["train"], folder / "vocabulary.json")
        prepared = [
            prepare(text, vocabulary, folder / part, corpus.longest, keep_text=part != "train")
            for part, text in texts.items()
        ]
    return TextData(vocabulary, *prepared)


def _vocabulary(corpus: Corpus, text: ParallelText, path: Path) -> Vocabulary:
    if not path.exists():
        with written_whole(path) as beside:
            Vocabulary.learn(Sentences(text), corpus.kind, corpus.size).save(beside)
    return Vocabulary.load(path)


def _toy(seed: int) -> dict[Split, Source]:
    language = ToyLanguage(seed)
    return {
        "train": lambda _: language.text(4000, seed=1),
        "valid": lambda _: language.text(200, seed=2),
        "test": lambda _: language.text(200, seed=3),
    }


def _files(folder: str, name: str, other: str) -> Source:
    """Read `name.en` and `name.<other>` in a folder."""
    return lambda root: ParallelText(
        [(text_file(root / folder, f"{name}.en"), text_file(root / folder, f"{name}.{other}"))]
    )


def _years(root: Path) -> ParallelText:
    """Read Europarl from one file per year, or from `train.en` and `train.de`."""
    folder = root / "europarl_en_de"
    names = sorted({path.name.split(".")[0] for path in folder.glob("20??.en*")}) or ["train"]
    return ParallelText([(text_file(folder, f"{name}.en"), text_file(folder, f"{name}.de")) for name in names])


def _newstest(year: int, other: str) -> Source:
    """Read plain files if they are there, else the published archive."""
    archive = {2013: wmt.NEWSTEST_2013, 2014: wmt.NEWSTEST_2014}[year]

    def source(root: Path) -> ParallelText:
        try:
            return _files("newstest", f"newstest{year}.en-{other}", other)(root)
        except FileNotFoundError:
            return wmt.wmt_text([archive], root / "wmt", other)

    return source


def _multi30k(other: str) -> dict[Split, Source]:
    names: dict[Split, str] = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
    return {part: _files("multi30k", name, other) for part, name in names.items()}


def _news(train: Source, other: str) -> dict[Split, Source]:
    return {"train": train, "valid": _newstest(2013, other), "test": _newstest(2014, other)}


CORPORA: dict[str, Corpus] = {
    "toy": Corpus(_toy(0), "bpe", 400, 48),
    "toy-pieces": Corpus(_toy(1), "wordpiece", 200, 64),
    "multi30k-de": Corpus(_multi30k("de"), "bpe", 10_000, 64),
    "multi30k-fr": Corpus(_multi30k("fr"), "wordpiece", 10_000, 64),
    "europarl-de": Corpus(_news(_years, "de"), "bpe", 32_000, 128),
    "wmt16-de": Corpus(
        _news(lambda root: wmt.wmt_text(wmt.WMT16_GERMAN, root / "wmt", "de"), "de"), "bpe", 37_000, 256
    ),
    "wmt14-fr": Corpus(
        _news(lambda root: wmt.wmt_text(wmt.WMT14_FRENCH, root / "wmt", "fr"), "fr"), "wordpiece", 32_000, 256
    ),
}
"""Training, validation and test text by name; all translate from English, or from the toy language."""
