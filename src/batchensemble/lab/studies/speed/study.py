"""The study of speed: every case and every way, divided by denominators of the same run."""

import itertools
import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run, tupled
from batchensemble.lab.studies.speed import timing
from batchensemble.lab.studies.speed.cases import Case, Settings, cases, skipped
from batchensemble.lab.studies.speed.networks import CLASSES, NETWORKS
from batchensemble.lab.studies.speed.timing import Measure
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.devices import start_fabric
from batchensemble.lab.training.progress import Progress

Measures = dict[str, Measure | None]
"""By name, what was measured of a denominator or a way; `None` if it does not fit in memory."""


def run(run: Run, context: Context) -> Record:
    """Measure every case; the record's `rows` has an entry for every case, way and denominator."""
    began = time.time()
    settings = Settings(**tupled(run.settings))
    device = start_fabric(context.device).device
    torch.manual_seed(run.seed)
    todo = cases(settings, device)
    context.progress.start("bench", sum(len(case.denominators) + len(case.ways) for case in todo))
    measured = [(case, _measured(case, settings, device, context.progress)) for case in todo]
    context.progress.end()
    metrics = {
        "network": NETWORKS[settings.network].title,
        "classes": CLASSES,
        "rows": [row for case, found in measured for row in _rows(case, found)],
        "skipped": {**skipped(settings), **_too_large(measured)},
    }
    return Record(run, metrics, Provenance.now(hardware(device), since=began))


def _measured(case: Case, settings: Settings, device: torch.device, progress: Progress) -> Measures:
    """Measure a case's denominators and ways; what does not fit in memory is `None`."""
    compiled = device.type == "cuda" if settings.compiled is None else settings.compiled

    def begin(name: str) -> None:
        progress.advance(f"{case.name}: {name}")

    return timing.measure({**case.denominators, **case.ways}, device, settings.repeats, compiled, begin)


def _rows(case: Case, measures: Measures) -> Iterator[dict[str, Any]]:
    """Every way over every denominator, as far as both were measured."""
    for way, denominator in itertools.product(case.ways, case.denominators):
        above, below = measures[way], measures[denominator]
        if above is not None and below is not None:
            yield _row(case.name, way, above, denominator, below)


def _too_large(measured: Iterable[tuple[Case, Measures]]) -> dict[str, str]:
    """What could not be measured for want of memory."""
    return {
        f"{case.name}: {name}": "it does not fit in memory"
        for case, measures in measured
        for name, measure in measures.items()
        if measure is None
    }


def _row(case: str, way: str, above: Measure, denominator: str, below: Measure) -> dict[str, Any]:
    return {
        "case": case,
        "way": way,
        "how": above.how,
        "ms": above.ms,
        "mib": above.mib,
        "denominator": denominator,
        "denominator_how": below.how,
        "denominator_ms": below.ms,
        "denominator_mib": below.mib,
        "ratio": above.ms / below.ms,
        "memory_ratio": above.mib / below.mib if above.mib is not None and below.mib else None,
    }


SPEED = Study("speed", run, timed=True)
