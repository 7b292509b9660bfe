"""What a study is, and the context it works in."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store
from batchensemble.lab.training.progress import Progress, Silent


@dataclass(frozen=True)
class Context:
    """Where a study works; nothing here changes a result, except that `shared` leaves out times.

    Args:
        data: folder of the data sets, or `None` for the cache that downloads go to.
        work: folder for checkpoints and logs; trained weights are found again there.
        device: `auto`, `cpu` or `cuda`.
        devices: number of devices that train together.
        progress: displays how far the work is.
        wait: wait for runs and weights that another process is working on, instead of raising `Busy`.
        store: existing records, for what can be computed from them.
        shared: other work shares the machine, so records get no times.
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
    """A kind of work: the name by which runs ask for it, and the function that does it."""

    name: str
    run: Callable[[Run, Context], Record]
