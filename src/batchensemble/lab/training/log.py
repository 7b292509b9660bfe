"""What happened in a training, epoch by epoch: JSON lines for us, TensorBoard for watching."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from batchensemble.disk import written_whole


class Log:
    """A line of numbers per epoch in `log.jsonl`, and the same numbers as TensorBoard curves.

    Args:
        folder: where `log.jsonl` and `tensorboard/` lie.
        epoch: where the training goes on; what an interrupted one wrote beyond it is taken out.
        write: whether this process writes; of several only one does.

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
            _cut(folder, epoch)
            self._file = self._open.enter_context((folder / "log.jsonl").open("a"))
            self._curves = self._open.enter_context(_curves(folder / "tensorboard", epoch))

    def write(self, line: Mapping[str, float]) -> None:
        """Adds an epoch."""
        if self._write:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            for name, value in line.items():
                self._curves.add_scalar(name, value, int(line["epoch"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()


def read_log(folder: Path) -> list[dict[str, float]]:
    """The epochs written so far."""
    return read_lines(folder / "log.jsonl")


def read_lines(path: Path) -> list[dict[str, float]]:
    """What a file of JSON lines holds, nothing where it is not there; a last line cut off by a kill does not count."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _cut(folder: Path, epoch: int) -> None:
    """Takes out what was written from `epoch` on."""
    kept = [line for line in read_log(folder) if line["epoch"] < epoch]
    with written_whole(folder / "log.jsonl") as beside:
        beside.write_text("".join(json.dumps(line) + "\n" for line in kept))


def _curves(folder: Path, epoch: int) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=epoch)
