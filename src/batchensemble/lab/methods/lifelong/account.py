"""What a training took, kept beside its checkpoint: a process that goes on counts what was done before it.

Not inside it: the library's learner ends its checkpoint when a task is learnt, and what that took is asked for later.
"""

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from batchensemble.disk import written_whole
from batchensemble.lifelong.training import Epoch

from .meter import Meter


class Account:
    """One training's epochs and what each of them cost, in a file.

    Args:
        meter: counts this process's operations, and is told what former processes did.
        path: the file; without one nothing is kept, and nothing was done before.
    """

    def __init__(self, meter: Meter, path: Path | None) -> None:
        self.meter, self.path = meter, path
        self._lines: list[dict[str, Any]] = json.loads(path.read_text()) if path and path.exists() else []
        self._here = 0  # epochs of this process
        self._operations, self._processor = meter.operations, time.process_time()

    def note(self, epoch: Epoch) -> None:
        """Writes down an epoch that this process did.

        Before its checkpoint: a kill between the two leaves a line too many, of an epoch that is done again and noted
        again, and never a checkpoint of an epoch whose cost nobody knows.
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
        """Tells the meter what former processes did of a training that has now done so many epochs."""
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
        """Of the first epochs; not a number where somebody took the file away."""
        noted = [line[name] for line in self._lines if line["epoch"] <= former]
        return sum(noted) if len(noted) == former else math.nan
