"""The archives of the Conference on Machine Translation that the paper trains on: downloaded once, read in place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from batchensemble.lab.data.archive import check, download
from batchensemble.lab.data.text.lines import Text, TextFile
from batchensemble.lab.data.text.parallel import ParallelText


@dataclass(frozen=True)
class WmtArchive:
    """A published tar archive.

    Args:
        url: where it is published.
        sha256: its checksum.
        english: name of the English text in it; `{other}` stands for the other language.
        foreign: name of the text in the other language.
    """

    url: str
    sha256: str
    english: str
    foreign: str

    def texts(self, folder: Path, other: str) -> tuple[Text, Text]:
        """English and the other language; the archive is downloaded to `folder` when they are read."""
        english, foreign = (name.format(other=other) for name in (self.english, self.foreign))
        return PublishedText(self, folder, english), PublishedText(self, folder, foreign)

    def ensure(self, folder: Path) -> Path:
        """The archive in `folder`, downloaded if it is missing.

        Raises:
            OSError: it is missing and cannot be downloaded.
            ValueError: it does not have the published checksum.
        """
        path = folder / self.url.rsplit("/", 1)[-1]
        if not path.exists():
            download(self.url, self.sha256, path, "sha256")
        _check(path, self.sha256)
        return path


@dataclass(frozen=True)
class PublishedText:
    """A text in an archive that is downloaded and checked when it is first read."""

    archive: WmtArchive
    folder: Path
    inside: str

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{self.archive.url}:{self.inside}"

    @property
    def stamp(self) -> str:
        """The archive's checksum."""
        return f"{self.archive.sha256}:{self.inside}"

    def lines(self) -> Iterator[bytes]:
        """The lines without their line ends."""
        return TextFile(self.archive.ensure(self.folder), self.inside).lines()


@cache
def _check(path: Path, sha256: str) -> None:
    """Check an archive once per process: archives are large, and hold many texts."""
    check(path, sha256, "sha256")


EUROPARL = WmtArchive(
    "http://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
    "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    "training/europarl-v7.{other}-en.en",
    "training/europarl-v7.{other}-en.{other}",
)
COMMON_CRAWL = WmtArchive(
    "http://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
    "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    "commoncrawl.{other}-en.en",
    "commoncrawl.{other}-en.{other}",
)
NEWS_2016 = WmtArchive(
    "http://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz",
    "cfe8ab047e05043476e498ee765c98e939c7b7d6d294e856344c84476b619d6a",
    "training-parallel-nc-v11/news-commentary-v11.{other}-en.en",
    "training-parallel-nc-v11/news-commentary-v11.{other}-en.{other}",
)
NEWS_2014 = WmtArchive(
    "http://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",
    "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    "training/news-commentary-v9.{other}-en.en",
    "training/news-commentary-v9.{other}-en.{other}",
)
UNITED_NATIONS = WmtArchive(
    "http://www.statmt.org/wmt13/training-parallel-un.tgz",
    "29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47",
    "un/undoc.2000.{other}-en.en",
    "un/undoc.2000.{other}-en.{other}",
)
GIGA = WmtArchive(
    "http://www.statmt.org/wmt10/training-giga-fren.tar",
    "3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a",
    "giga-fren.release2.fixed.en.gz",
    "giga-fren.release2.fixed.{other}.gz",
)
_DEVELOPMENT = (
    "http://data.statmt.org/wmt19/translation-task/dev.tgz",
    "7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
)
NEWSTEST_2013 = WmtArchive(*_DEVELOPMENT, "dev/newstest2013.en", "dev/newstest2013.{other}")
NEWSTEST_2014 = WmtArchive(
    *_DEVELOPMENT, "dev/newstest2014-{other}en-ref.en.sgm", "dev/newstest2014-{other}en-src.{other}.sgm"
)

WMT16_GERMAN = (EUROPARL, COMMON_CRAWL, NEWS_2016)
WMT14_FRENCH = (EUROPARL, COMMON_CRAWL, NEWS_2014, UNITED_NATIONS, GIGA)


def wmt_text(archives: Sequence[WmtArchive], folder: Path, other: str) -> ParallelText:
    """Join English and another language from several archives, one after another."""
    return ParallelText([archive.texts(folder, other) for archive in archives])
