"""How far learning has come: a bar if rich is installed, lines if it is not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from batchensemble.lifelong.training import Epoch

Progress = Callable[[Epoch], None]


@contextmanager
def shown(progress: bool | Progress) -> Iterator[Progress | None]:
    """The user's `progress=`: silence, what this terminal can show, or a function of their own."""
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    else:
        with _shown() as show:
            yield show


@contextmanager
def _shown() -> Iterator[Progress]:
    try:
        from rich.progress import Progress as Bars
    except ImportError:
        yield lambda epoch: print(line(epoch))
        return
    with Bars(transient=True) as bars:
        task = bars.add_task("learning", total=None)
        yield lambda epoch: bars.update(task, description=line(epoch), completed=epoch.epoch, total=epoch.epochs)


def line(epoch: Epoch) -> str:
    """An epoch in words.

    Examples:
        >>> line(Epoch(("birds",), 3, 10, loss=0.51, accuracy=0.75, seconds=1.2))
        'birds: epoch 3/10, loss 0.510, accuracy 75.0%'
    """
    names = ", ".join(epoch.names)
    return f"{names}: epoch {epoch.epoch}/{epoch.epochs}, loss {epoch.loss:.3f}, accuracy {epoch.accuracy:.1%}"
