"""The study: every case, every way, divided within one run."""

import time
from collections.abc import Iterator
from typing import Any

import torch

from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run
from batchensemble.lab.studies.speed import timing
from batchensemble.lab.studies.speed.cases import Case, Settings, cases, skipped
from batchensemble.lab.studies.speed.networks import CLASSES, NETWORKS
from batchensemble.lab.studies.speed.timing import Make, Measure
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.devices import start_fabric


def run(run: Run, context: Context) -> Record:
    """Measures every case. `rows` of the record: one for every case, way and denominator."""
    began = time.time()
    settings = _settings(run)
    device = start_fabric(context.device).device
    torch.manual_seed(run.seed)
    torch.backends.cudnn.benchmark = True
    todo = cases(settings, device)
    missing = skipped(settings)
    context.progress.start("bench", sum(len(case.denominators) + len(case.ways) for case in todo))
    rows = [row for case in todo for row in _rows(case, settings, device, context, missing)]
    context.progress.end()
    network = {"network": NETWORKS[settings.network].title, "classes": CLASSES}
    metrics = {**network, "rows": rows, "skipped": missing}
    return Record(run, metrics, Provenance.now(hardware(device), since=began))


def _settings(run: Run) -> Settings:
    """The settings of a run, lists as tuples again."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in run.settings.items()
    }
    values["layers"] = tuple(map(tuple, values["layers"]))
    return Settings(**values)


def _rows(
    case: Case, settings: Settings, device: torch.device, context: Context, missing: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Denominators first, then every way over each of them; what does not fit in memory is said to be missing."""
    compiled = device.type == "cuda" if settings.compiled is None else settings.compiled

    def measured(name: str, make: Make) -> Measure:
        found = timing.measure(make, device, settings.repeats, compiled)
        context.progress.advance(f"{case.name}: {name}")
        return found

    below = {name: measured(name, make) for name, make in case.denominators.items()}
    for way, make in case.ways.items():
        try:
            ours = measured(way, make)
        except torch.OutOfMemoryError:
            missing[f"{case.name}: {way}"] = "it does not fit in memory"
            continue
        for denominator, theirs in below.items():
            yield _row(case.name, way, ours, denominator, theirs)


def _row(case: str, way: str, ours: Measure, denominator: str, theirs: Measure) -> dict[str, Any]:
    measured = {"case": case, "way": way, "how": ours.how, "ms": ours.ms, "mib": ours.mib}
    below = {"denominator": denominator, "denominator_how": theirs.how}
    below |= {"denominator_ms": theirs.ms, "denominator_mib": theirs.mib}  # type: ignore[dict-item]
    memory = ours.mib / theirs.mib if ours.mib is not None and theirs.mib else None
    return {**measured, **below, "ratio": ours.ms / theirs.ms, "memory_ratio": memory}


SPEED = Study("speed", run)
