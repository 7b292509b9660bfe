"""Shared by the lifelong experiments: methods by name, and grids of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from batchensemble.lab.experiments.experiment import Grid, Row
from batchensemble.lab.methods import lifelong as methods
from batchensemble.lab.records import Scale
from batchensemble.lab.studies.lifelong import Settings

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
OWN_NORM_4 = "BatchEnsemble, own norms, rank 4"
OWN_NORM_16 = "BatchEnsemble, own norms, rank 16"
LATERALS = "BatchEnsemble, lateral connections"

METHODS: Mapping[str, methods.Method] = {
    VANILLA: methods.Finetune(),
    EWC: methods.EWC(),
    PNN: methods.PNN(),
    BATCH: methods.BatchEnsemble(),
    BN_TUNED: methods.BNTuned(),
    DEN: methods.DEN(),
    RCL: methods.RCL(),
    SEPARATE: methods.Separate(),
    FROM_FIRST: methods.BatchEnsemble(start="first"),
    FROM_SIMILAR: methods.BatchEnsemble(start="similar"),
    FROZEN_NORM: methods.BatchEnsemble(start="first", norm="shared"),
    OWN_NORM: methods.BatchEnsemble(start="first", norm="member"),
    RANK_4: methods.BatchEnsemble(start="first", rank=4),
    OWN_NORM_4: methods.BatchEnsemble(start="first", norm="member", rank=4),
    OWN_NORM_16: methods.BatchEnsemble(start="first", norm="member", rank=16),
    LATERALS: methods.BatchEnsemble(start="first", laterals=2),
}


def grids(
    scales: Mapping[Scale, Settings],
    *names: str,
    seeds: Mapping[Scale, int] | None = None,
    **changes: Callable[[Settings], Settings],
) -> dict[Scale, Grid]:
    """Grids of methods at every scale.

    Args:
        scales: settings shared by all methods.
        names: names of the methods.
        seeds: number of seeds, for scales with more than one.
        changes: by scale, a change to the settings of some methods.
    """

    def row(name: str, scale: Scale, base: Settings) -> Row:
        settings = replace(base, method=METHODS[name])
        return Row({"method": name}, changes[scale](settings) if scale in changes else settings)

    return {
        scale: Grid(tuple(row(name, scale, base) for name in names), tuple(range((seeds or {}).get(scale, 1))))
        for scale, base in scales.items()
    }
