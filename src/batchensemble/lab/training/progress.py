"""Progress of the work: bars with the time left, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Progress:
    """Receives the start, the steps and the end of every piece of work, and shows nothing; pieces may be nested."""

    def start(self, name: str, total: int, done: int = 0) -> None:
        """A piece of work of `total` steps begins, `done` of them already completed."""

    def advance(self, note: str = "") -> None:
        """One more step of the innermost piece is complete; `note` is shown beside the bar."""

    def end(self) -> None:
        """The innermost piece of work has ended."""

    @contextmanager
    def ended(self) -> Iterator[None]:
        """End with this block whatever begins inside it, even if it fails."""
        yield


class Bars(Progress):
    """A bar with the time left for each piece of work, inner ones below outer ones."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._tasks: list[int] = []

    def start(self, name: str, total: int, done: int = 0) -> None:
        """Add a bar."""
        self._tasks.append(self._bars.add_task(name, total=total, completed=done, note=""))

    def advance(self, note: str = "") -> None:
        """Advance the lowest bar."""
        self._bars.update(self._tasks[-1], advance=1, note=note)  # type: ignore[arg-type]

    def end(self) -> None:
        """Remove the lowest bar."""
        self._bars.remove_task(self._tasks.pop())  # type: ignore[arg-type]

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Remove bars that are left over at the end of the block."""
        depth = len(self._tasks)
        try:
            yield
        finally:
            while len(self._tasks) > depth:
                self.end()


@contextmanager
def bars(console: Console) -> Iterator[Bars]:
    """Show progress bars on the terminal while the block runs."""
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
