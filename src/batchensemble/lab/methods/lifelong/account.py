"""The cost of a training, kept next to its checkpoint, so that a resumed process includes what was done before it.

It is not kept inside the checkpoint: the library's learner deletes that once a task is learned, and the cost is needed
later.
"""

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from batchensemble.disk import written_whole
from batchensemble.lab.methods.lifelong.meter import Meter
from batchensemble.lifelong import Epoch


class Account:
    """The epochs of one training and the cost of each, in a file.

    Args:
        meter: counts this process's operations, and is told about those of earlier processes.
        path: the file; without one, nothing is kept and nothing was done before.
    """

    def __init__(self, meter: Meter, path: Path | None) -> None:
        self.meter, self.path = meter, path
        self._lines: list[dict[str, Any]] = json.loads(path.read_text()) if path and path.exists() else []
        self._here = 0  # epochs in this process
        self._operations, self._processor = meter.operations, time.process_time()

    def note(self, epoch: Epoch) -> None:
        """Write down an epoch of this process.

        Called before the checkpoint is written: a kill between the two leaves one line too many, for an epoch that is
        repeated and noted again, but never a checkpoint of an epoch whose cost is unknown.
        """
        operations, processor = self.meter.operations, time.process_time()
        spent = {"operations": operations - self._operations, "processor_seconds": processor - self._processor}
        self._here, self._operations, self._processor = self._here + 1, operations, processor
        before = [line for line in self._lines if line["epoch"] < epoch.epoch]
        self._lines = [*before, {**asdict(epoch), **spent}]
        if self.path is not None:
            with written_whole(self.path) as beside:
                beside.write_text(json.dumps(self._lines))

    def settle(self, epochs: int) -> None:
        """Add to the meter what earlier processes did of a training that has now completed `epochs` epochs."""
        former = epochs - self._here
        self.meter.operations += self._cost("operations", former)
        self.meter.former_seconds += self._cost("seconds", former)
        self.meter.former_processor_seconds += self._cost("processor_seconds", former)

    def history(self) -> list[Epoch]:
        """The epochs as they were written down."""
        return [
            Epoch(tuple(line["names"]), *(line[name] for name in ("epoch", "epochs", "loss", "accuracy", "seconds")))
            for line in self._lines
        ]

    def _cost(self, name: str, former: int) -> Any:
        """The cost of the first `former` epochs; NaN if the file was removed meanwhile."""
        noted = [line[name] for line in self._lines if line["epoch"] <= former]
        return sum(noted) if len(noted) == former else math.nan
