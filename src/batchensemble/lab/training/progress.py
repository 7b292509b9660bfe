"""How far the work is: a bar with the time left, or silence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Progress(Protocol):
    """Told about every piece of work and every step of it."""

    def start(self, name: str, total: int, done: int = 0) -> None:
        """A piece of work of `total` steps begins, `done` of them behind it."""
        ...

    def advance(self, note: str = "") -> None:
        """One more step of the innermost piece is done; `note` is shown beside the bar."""
        ...

    def end(self) -> None:
        """The innermost piece of work ended."""
        ...


class Silent:
    """Shows nothing."""

    def start(self, name: str, total: int, done: int = 0) -> None:
        """Nothing."""

    def advance(self, note: str = "") -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class Bars:
    """A bar per piece of work, the inner below the outer, with the time left."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._tasks: list[int] = []

    def start(self, name: str, total: int, done: int = 0) -> None:
        """Adds a bar."""
        self._tasks.append(self._bars.add_task(name, total=total, completed=done, note=""))

    def advance(self, note: str = "") -> None:
        """Moves the lowest bar."""
        self._bars.update(self._tasks[-1], advance=1, note=note)  # type: ignore[arg-type]

    def end(self) -> None:
        """Takes the lowest bar away."""
        self._bars.remove_task(self._tasks.pop())  # type: ignore[arg-type]


@contextmanager
def bars(console: Console) -> Iterator[Bars]:
    """Progress bars on the terminal while the block runs."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with RichProgress(*columns, console=console, transient=True) as live:
        yield Bars(live)
