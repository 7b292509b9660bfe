"""Tables: where members that share weights may be worth more than networks that do not. Not in the paper."""

from collections.abc import Mapping
from dataclasses import replace

from batchensemble.lab.experiments.classifiers import BATCH, DROPOUT, NAIVE, REPEATED, SINGLE
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.methods.ensembles import BatchEnsemble, Dropout, Naive
from batchensemble.lab.report.views import comparison, over_label
from batchensemble.lab.studies.tables import TABLES as STUDY
from batchensemble.lab.studies.tables import Settings

BASE = Settings()
SIXTEEN = "BatchEnsemble, 16 members"
FIRST = "BatchEnsemble, first layer only"
METHODS: Mapping[str, Settings] = {
    SINGLE: BASE,
    DROPOUT: replace(BASE, method=Dropout(rate=0.1, block_rate=0.1)),
    NAIVE: replace(BASE, method=Naive()),
    BATCH: replace(BASE, method=BatchEnsemble()),
    SIXTEEN: replace(BASE, method=BatchEnsemble(members=16)),
    REPEATED: replace(BASE, method=BatchEnsemble(rows="repeated")),
    FIRST: replace(BASE, method=BatchEnsemble(init="first")),
}
"""Members train on their share of each batch, except with the repeated batch. `first layer only` starts as TabM."""
REGULARISED: Mapping[str, Settings] = {
    "Single, decay 0.3": replace(BASE, weight_decay=0.3),
    "Single, decay 3": replace(BASE, weight_decay=3.0),
    "MC-dropout, rate 0.3": replace(BASE, method=Dropout(rate=0.3, block_rate=0.3)),
    "MC-dropout, rate 0.5": replace(BASE, method=Dropout(rate=0.5, block_rate=0.5)),
}
"""A thousand times the weight decay and ten thousand; three and five times the dropout."""
SEEDS = (0, 1, 2)
QUICK = replace(BASE, data="toy", hidden=(16, 16), batch=32)


def _row(name: str, settings: Settings) -> Row:
    # Every network of the naive ensembles is a single network, too.
    seeds = tuple(range(4 * len(SEEDS))) if name == SINGLE else SEEDS
    labels = {"method": name, "data": settings.data.capitalize(), "length": f"{settings.epochs} epochs"}
    return Row(labels, settings, seeds if settings.data != "toy" else None)


def _grid(methods: Mapping[str, Settings]) -> Grid:
    return Grid(
        tuple(
            _row(name, replace(settings, data=data, epochs=epochs))
            for data in ("income", "occupation", "shuttle")
            for epochs in (3, 10, 30)
            for name, settings in methods.items()
        )
    )


def _quick(methods: Mapping[str, Settings], *names: str) -> Grid:
    return Grid(
        tuple(
            _row(name, replace(QUICK, method=methods[name].method, epochs=epochs))
            for epochs in (1, 2)
            for name in names
        )
    )


_BY_LENGTH = over_label("length", "nll", "accuracy", xlabel="epochs", title="Quality by length of training")
_TABULATED = tuple(
    comparison(metric, rows=("data", "method"), columns="length", name=metric)
    for metric in ("nll", "accuracy", "ece", "member_accuracy", "disagreement", "train_accuracy")
)

TABLES = Experiment(
    id="tables",
    item="Not in the paper: classifying the rows of a table",
    claim="TabM (Gorishniy et al., 2025) reports that members which share weights do better on tables than independent "
    "networks. Each method is trained for several lengths, since the best length is not the same for all.",
    study=STUDY,
    scales={"small": _grid(METHODS), "smoke": _quick(METHODS, SINGLE, DROPOUT, BATCH, NAIVE)},
    show=(_BY_LENGTH, *_TABULATED),
)
TABLES_REGULARISED = Experiment(
    id="tables-regularised",
    item="Not in the paper: the same tables, one network with more decay or dropout",
    claim="If members only regularise, a network that is regularised otherwise should do as well.",
    study=STUDY,
    scales={"small": _grid(REGULARISED), "smoke": _quick(REGULARISED, "MC-dropout, rate 0.5")},
    show=(_BY_LENGTH, *_TABULATED),
)
