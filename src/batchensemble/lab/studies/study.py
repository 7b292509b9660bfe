"""What a study is, and what it may use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store
from batchensemble.lab.training.progress import Progress, Silent


@dataclass(frozen=True)
class Context:
    """Where a study works: nothing here changes a result.

    Args:
        data: the folder that holds the data sets, or `None` for the cache that downloads go to.
        work: the folder for checkpoints and logs; trained weights are found again there.
        device: `auto`, `cpu` or `cuda`.
        devices: how many of them train together.
        progress: shows how far the work is.
        wait: for weights that another process is training, instead of raising `Busy`.
        store: where records are, for what can be made of them.
        shared: other work shares the machine, so that records get no times.
    """

    data: Path | None = None
    work: Path = Path("runs")
    device: str = "auto"
    devices: int = 1
    progress: Progress = field(default_factory=Silent)
    wait: bool = False
    store: Store | None = None
    shared: bool = False


@dataclass(frozen=True)
class Study:
    """One kind of work: its name, by which runs ask for it, and the function that does it."""

    name: str
    run: Callable[[Run, Context], Record]
