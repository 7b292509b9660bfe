"""Tables: where members that share weights may be worth more than networks that do not. Not in the paper."""

from collections.abc import Mapping, Sequence

from batchensemble.lab.experiments.classifiers import BATCH, DROPOUT, NAIVE, REPEATED, SINGLE
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.methods.ensembles import BatchEnsemble, Dropout, Method, Naive, Single
from batchensemble.lab.report.views import comparison, over_label
from batchensemble.lab.studies.tables import TABLES as STUDY
from batchensemble.lab.studies.tables import Settings

SIXTEEN = "BatchEnsemble, 16 members"
FIRST = "BatchEnsemble, first layer only"
METHODS: Mapping[str, Method] = {
    SINGLE: Single(),
    DROPOUT: Dropout(rate=0.1, block_rate=0.1),
    NAIVE: Naive(),
    BATCH: BatchEnsemble(),
    SIXTEEN: BatchEnsemble(members=16),
    REPEATED: BatchEnsemble(rows="repeated"),
    FIRST: BatchEnsemble(init="first"),
}
"""Members train on their share of each batch, except with the repeated batch. `first layer only` starts as TabM."""
SEEDS = (0, 1, 2)


def _row(name: str, data: str, epochs: int, seeds: Sequence[int], **size: int | tuple[int, ...]) -> Row:
    # Every network of the naive ensembles is a single network, too.
    own = tuple(range(4 * len(seeds))) if name == SINGLE else None
    settings = Settings(METHODS[name], data, epochs=epochs, **size)  # type: ignore[arg-type]
    return Row({"method": name, "data": data.capitalize(), "length": f"{epochs} epochs"}, settings.settings(), own)


TABLES = Experiment(
    id="tables",
    item="Not in the paper: classifying the rows of a table",
    claim="TabM (Gorishniy et al., 2025) reports that members which share weights do better on tables than independent "
    "networks. Each method is trained for several lengths, since the best length is not the same for all.",
    study=STUDY,
    scales={
        "small": Grid(
            tuple(
                _row(name, data, epochs, SEEDS)
                for data in ("income", "occupation", "shuttle")
                for epochs in (3, 10, 30)
                for name in METHODS
            ),
            SEEDS,
        ),
        "smoke": Grid(
            tuple(
                _row(name, "toy", epochs, (0,), hidden=(16, 16), batch=32)
                for epochs in (1, 2)
                for name in (SINGLE, DROPOUT, BATCH, NAIVE)
            )
        ),
    },
    show=(
        over_label("length", "nll", "accuracy", xlabel="epochs", title="Quality by length of training"),
        *(
            comparison(metric, rows=("data", "method"), columns="length", name=metric)
            for metric in ("nll", "accuracy", "ece", "member_accuracy", "disagreement", "train_accuracy")
        ),
    ),
)
