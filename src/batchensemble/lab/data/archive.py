"""Official archives: downloaded once, checked, and unpacked completely or not at all."""

import hashlib
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Archive:
    """A published tar archive that unpacks into one folder.

    Attributes:
        url: where it is published; the last part is its file name.
        md5: the published checksum of the archive.
        folder: the folder that it unpacks into.
        files: the checksum of every file in the folder that we read.
    """

    url: str
    md5: str
    folder: str
    files: Mapping[str, str]

    @property
    def file_name(self) -> str:
        """The archive's own name."""
        return self.url.rsplit("/", 1)[-1]

    def ensure(self, root: Path) -> Path:
        """The unpacked folder in `root`, every file checked; what is missing is downloaded and unpacked.

        Raises:
            FileNotFoundError: a file of the folder is missing.
            ValueError: the archive or a file does not have the published checksum.
        """
        folder = root / self.folder
        if not folder.exists():
            archive = root / self.file_name
            if not archive.exists():
                download(self.url, self.md5, archive)
            check(archive, self.md5)
            self._unpack(archive, folder)
        self._check_files(folder)
        return folder

    def _unpack(self, archive: Path, folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as temporary:
            try:
                with tarfile.open(archive) as tar:
                    tar.extractall(temporary, filter="data")
            except (tarfile.TarError, EOFError, OSError) as error:
                raise ValueError(f"{archive}: cannot be unpacked ({error})") from error
            self._check_files(Path(temporary) / self.folder)
            publish(Path(temporary) / self.folder, folder)

    def _check_files(self, folder: Path) -> None:
        for name, md5 in self.files.items():
            check(folder / name, md5)


def check(path: Path, checksum: str, kind: str = "md5") -> None:
    """Raise unless the file at `path` exists and has this checksum, of a kind that `hashlib` knows."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: missing; delete {path.parent} to have it unpacked again")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    if found != checksum:
        told = f"{kind} {found}, published {checksum}"
        raise ValueError(f"{path}: damaged or truncated ({told}); delete it and try again")


def publish(unpacked: Path, folder: Path) -> None:
    """Move a finished folder into place, unless another process was faster."""
    try:
        unpacked.rename(folder)
    except OSError:
        if not folder.exists():
            raise


def download(url: str, checksum: str, path: Path, kind: str = "md5") -> None:
    """Download `url` to `path` with a progress bar; the file appears only if its checksum is right."""
    import pooch

    path.parent.mkdir(parents=True, exist_ok=True)
    with DownloadBar(path.name) as bar:
        downloader = pooch.HTTPDownloader(progressbar=bar)
        try:
            pooch.retrieve(url, f"{kind}:{checksum}", fname=path.name, path=path.parent, downloader=downloader)
        except OSError as error:
            advice = f"fetch it by other means and put it at {path}"
            raise OSError(f"{url}: cannot be downloaded ({error}); {advice}") from error


class DownloadBar:
    """A rich progress bar with the methods that pooch calls (`total`, `update`, `reset`, `close`)."""

    def __init__(self, title: str) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

        columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns)
        self._task = self._progress.add_task(title, total=None)
        self.total = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, size: int) -> None:
        """Add `size` bytes that have arrived."""
        self._progress.update(self._task, total=self.total or None, advance=size)

    def reset(self) -> None:
        """Start again from zero."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """Do nothing: the bar closes with its context."""
