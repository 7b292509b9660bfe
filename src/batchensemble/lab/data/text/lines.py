"""Text on disk: plain, compressed, in SGML, or inside a published archive; one sentence per line."""

import gzip
import hashlib
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, Protocol

ENDINGS = ("", ".gz", ".xz")
_SEGMENT = re.compile(rb"<seg[^>]*>(.*?)</seg>", re.DOTALL)


class Text(Protocol):
    """Sentences, one per line."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    @property
    def stamp(self) -> str:
        """Distinguish it from other texts without reading it."""
        ...

    def lines(self) -> Iterator[bytes]:
        """The lines without their line ends."""
        ...


@dataclass(frozen=True)
class GivenText:
    """Sentences in memory."""

    name: str
    sentences: tuple[str, ...]

    @property
    def stamp(self) -> str:
        """Its name and a digest of its sentences."""
        return f"{self.name}, {hashlib.sha256(repr(self.sentences).encode()).hexdigest()}"

    def lines(self) -> Iterator[bytes]:
        """The sentences."""
        return (sentence.encode() for sentence in self.sentences)


@dataclass(frozen=True)
class TextFile:
    r"""One side of a parallel text.

    Args:
        path: a file, plain or `.gz` or `.xz`, or a tar archive.
        inside: name of the text in the archive; it may be compressed, too.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "train.en"
        >>> path.write_bytes("A cat.\nTwo dogs.\u2028Still two dogs.\n".encode()) > 0
        True
        >>> [line.decode() for line in TextFile(path).lines()]
        ['A cat.', 'Two dogs.\u2028Still two dogs.']
    """

    path: Path
    inside: str | None = None

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{self.path}:{self.inside}" if self.inside else str(self.path)

    @property
    def stamp(self) -> str:
        """The file's name, size and modification time: a corrected text may have as many bytes as before."""
        about = self.path.stat()
        return f"{self.path.name}:{self.inside}, {about.st_size}, {about.st_mtime_ns}"

    def lines(self) -> Iterator[bytes]:
        r"""The lines without their ends; only `\n` ends a line, since text may contain Unicode's separators."""
        with ExitStack() as opened:
            try:
                file = self._open(opened)
                sgml = ".sgm" in (self.inside or self.path.name).rpartition("/")[2]
                yield from _segments(file) if sgml else (line.rstrip(b"\r\n") for line in file)
            except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, tarfile.TarError) as error:
                raise ValueError(f"{self.name}: damaged or truncated ({error})") from error

    def _open(self, opened: ExitStack) -> Any:
        if self.inside is None:
            return _uncompressed(opened.enter_context(self.path.open("rb")), self.path.name, opened)
        tar = opened.enter_context(tarfile.TarFile.open(self.path))
        try:
            member = tar.extractfile(self.inside)
        except KeyError:
            member = None
        if member is None:
            raise ValueError(f"{self.path} holds no file {self.inside}")
        return _uncompressed(opened.enter_context(member), self.inside, opened)


def text_file(folder: Path, name: str) -> TextFile:
    """The text called `name` in a folder, plain or compressed.

    Raises:
        FileNotFoundError: it is there in neither form.
    """
    for ending in ENDINGS:
        if (folder / f"{name}{ending}").is_file():
            return TextFile(folder / f"{name}{ending}")
    raise FileNotFoundError(f"{folder / name}: not found, nor with {' or '.join(ENDINGS[1:])}")


def _uncompressed(file: Any, name: str, opened: ExitStack) -> Any:
    if name.endswith(".gz"):
        return opened.enter_context(gzip.open(file))
    return opened.enter_context(lzma.open(file)) if name.endswith(".xz") else file


def _segments(file: Any) -> Iterator[bytes]:
    """The sentences of an SGML test set, each on one line however it was broken."""
    for segment in _SEGMENT.findall(file.read()):
        words = unescape(segment.decode(errors="surrogateescape")).split()
        yield " ".join(words).encode(errors="surrogateescape")
