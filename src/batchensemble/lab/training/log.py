"""The log of a training, epoch by epoch: JSON lines for programs, TensorBoard for people."""

import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, cast

from batchensemble.disk import written_whole


class Log:
    """A line of numbers per epoch in `log.jsonl`, and the same numbers as curves if TensorBoard is installed.

    Args:
        folder: where `log.jsonl` and `tensorboard/` are kept.
        epoch: the epoch to continue from; lines that an interrupted training wrote from there on are removed.
        write: whether this process writes; only one of several does.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with Log(folder) as log:
        ...     log.write({"epoch": 0, "loss": 2.5})
        >>> read_log(folder)
        [{'epoch': 0, 'loss': 2.5}]
    """

    def __init__(self, folder: Path, epoch: int = 0, *, write: bool = True) -> None:
        self._open = ExitStack()
        self._write = write
        if write:
            write_lines(folder / "log.jsonl", [line for line in read_log(folder) if line["epoch"] < epoch])
            self._file = self._open.enter_context((folder / "log.jsonl").open("a"))
            self._curves = self._open.enter_context(_curves(folder / "tensorboard", epoch))

    def write(self, line: Mapping[str, float]) -> None:
        """Append the line of an epoch."""
        if self._write:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            if self._curves is not None:
                for name, value in line.items():
                    self._curves.add_scalar(name, value, int(line["epoch"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def read_log(folder: Path) -> list[dict[str, float]]:
    """The lines of all epochs logged so far."""
    return read_lines(folder / "log.jsonl")


def read_lines(path: Path) -> list[dict[str, float]]:
    """Parse a file of JSON lines, empty if missing; an unterminated last line, left by a kill, is ignored."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def write_lines(path: Path, lines: Iterable[Mapping[str, float]]) -> None:
    """Write a file of JSON lines, all of them or none."""
    with written_whole(path) as beside:
        beside.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _curves(folder: Path, epoch: int) -> AbstractContextManager[Any]:
    if find_spec("tensorboard") is None:  # on a cluster, say; the log is enough to train
        return nullcontext()
    from torch.utils.tensorboard import SummaryWriter

    return cast(AbstractContextManager[Any], SummaryWriter(str(folder), purge_step=epoch))
