"""Shared by the lifelong experiments: methods by name, and grids of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from batchensemble.lab.experiments.experiment import Grid, Row
from batchensemble.lab.records import Scale
from batchensemble.lab.studies.lifelong import Settings, method

VANILLA = "Vanilla"
EWC = "EWC"
PNN = "PNN"
BATCH = "BatchEnsemble"
BN_TUNED = "BN-tuned"
DEN = "DEN"
RCL = "RCL"
SEPARATE = "Separate networks"
FROM_FIRST = "BatchEnsemble, from the first task"
FROM_SIMILAR = "BatchEnsemble, from the most similar task"
FROZEN_NORM = "BatchEnsemble, frozen statistics"
OWN_NORM = "BatchEnsemble, own norms"
RANK_4 = "BatchEnsemble, rank 4"
LATERALS = "BatchEnsemble, lateral connections"

Change = Callable[[Settings], Settings]
"""A method's settings, as a change to those shared by all methods."""

METHODS: Mapping[str, Change] = {
    VANILLA: lambda base: replace(base, method=method("finetune")),
    EWC: lambda base: replace(base, method=method("ewc")),
    PNN: lambda base: replace(base, method=method("pnn")),
    BATCH: lambda base: replace(base, method=method("batch_ensemble")),
    BN_TUNED: lambda base: replace(base, method=method("bn_tuned")),
    DEN: lambda base: replace(base, method=method("den")),
    RCL: lambda base: replace(base, method=method("rcl")),
    SEPARATE: lambda base: replace(base, method=method("separate")),
    FROM_FIRST: lambda base: replace(base, method=method("batch_ensemble", start="first")),
    FROM_SIMILAR: lambda base: replace(base, method=method("batch_ensemble", start="similar")),
    FROZEN_NORM: lambda base: replace(base, method=method("batch_ensemble", start="first", norm="shared")),
    OWN_NORM: lambda base: replace(base, method=method("batch_ensemble", start="first", norm="member")),
    RANK_4: lambda base: replace(base, method=method("batch_ensemble", start="first", rank=4)),
    LATERALS: lambda base: replace(base, method=method("batch_ensemble", start="first", laterals=2)),
}


def grids(
    scales: Mapping[Scale, Settings], *names: str, seeds: Mapping[Scale, int] | None = None, **changes: Change
) -> dict[Scale, Grid]:
    """Returns grids of methods at every scale.

    Args:
        scales: settings shared by all methods.
        names: names of the methods.
        seeds: number of seeds, for scales with more than one.
        changes: by scale, a further change to the settings.
    """
    return {
        scale: Grid(
            tuple(Row({"method": name}, changes.get(scale, _same)(METHODS[name](base)).settings()) for name in names),
            tuple(range((seeds or {}).get(scale, 1))),
        )
        for scale, base in scales.items()
    }


def _same(settings: Settings) -> Settings:
    return settings
