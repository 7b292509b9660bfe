"""What a study is, and the context it works in."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from batchensemble.extras import require
from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store
from batchensemble.lab.training.devices import is_one_of_several
from batchensemble.lab.training.progress import Progress


@dataclass(frozen=True)
class Context:
    """Where a study works; nothing here changes a result, except that `shared` leaves out times.

    Args:
        data: folder of the data sets, or `None` for the cache that downloads go to.
        work: folder for checkpoints and logs; trained weights are found again there.
        device: `auto`, `cpu` or `cuda`.
        devices: number of devices that train together.
        progress: is told how far the work is.
        wait: wait for runs and weights that another process is working on, instead of raising `Busy`.
        store: existing records, for what can be computed from them.
        shared: other work shares the machine, so records get no times.
    """

    data: Path | None = None
    work: Path = Path("runs")
    device: str = "auto"
    devices: int = 1
    progress: Progress = field(default_factory=Progress)
    wait: bool = False
    store: Store | None = None
    shared: bool = False


@dataclass(frozen=True)
class Study:
    """A kind of work.

    Args:
        name: the name by which runs ask for it.
        run: the function that does it.
        together: whether several devices can work on one run.
        timed: whether it measures times and nothing else.
        extra: the extra of this package that it needs.
        packages: names of the modules that the extra installs.
    """

    name: str
    run: Callable[[Run, Context], Record]
    together: bool = False
    timed: bool = False
    extra: str = ""
    packages: tuple[str, ...] = ()

    def check(self, context: Context) -> None:
        """Refuse a context in which none of its runs could be performed, before the first one begins.

        Raises:
            ValueError: several devices cannot work together on one run, or times would mean nothing.
            ModuleNotFoundError: a package is missing.
        """
        if is_one_of_several(context.devices) and not self.together:
            advice = "start the command several times, and the processes share the runs"
            raise ValueError(f"a run of {self.name} has one device; {advice}")
        if context.shared and self.timed:
            raise ValueError(f"{self.name} is a matter of time: it needs the machine for itself, and no --shared")
        require(self.name, self.extra, *self.packages)
