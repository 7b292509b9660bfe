"""Shared by the translation experiments: Transformers at every scale, their methods, and a race."""

import math
from collections.abc import Mapping
from dataclasses import replace

from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.records import Scale
from batchensemble.lab.report.quantity import Quantity
from batchensemble.lab.report.views import View, comparison, lower, no_better, over_steps, sooner
from batchensemble.lab.studies.translation import TRANSLATION, Members, Recipe, Settings

SINGLE, DROPOUT, BATCH, REPEATED = "Single", "MC-dropout", "BatchEnsemble", "BatchEnsemble, repeated batch"

TOY = Recipe(
    data="toy", size="toy", dropout=0.05, inner_dropout=0.0, steps=200, epoch=50, tokens=1024, lr=0.5, warmup=100,
    bleu_every=2, precision="fp32",
)  # fmt: skip
"""Takes seconds on a CPU."""

MULTI30K = Recipe(
    data="multi30k-de",
    size="small",
    dropout=0.3,
    steps=6000,
    epoch=250,
    tokens=4096,
    lr=1.0,
    warmup=2000,
    bleu_every=4,
)
"""Takes a minute on a GPU."""

EUROPARL = Recipe(
    data="europarl-de",
    size="base",
    dropout=0.1,
    steps=4000,
    epoch=500,
    tokens=25_000,
    lr=1.0,
    warmup=2000,
    bleu_every=4,
)
"""Takes a few minutes on a GPU: a fixed number of steps, far from convergence."""

BIG = Recipe()
BASE = replace(BIG, size="base", dropout=0.1, steps=100_000)


def rows(
    data: str,
    model: str,
    recipe: Recipe,
    *methods: str,
    seeds: tuple[int, ...] | None = None,
    samples: int = 16,
) -> tuple[Row, ...]:
    """Rows of methods on one corpus and one size of network; they differ only in how it is trained or used.

    Args:
        data: label of the corpus.
        model: label of the size.
        recipe: recipe of the single network.
        *methods: names of the methods.
        seeds: seeds to use instead of the grid's.
        samples: number of MC-dropout samples.
    """
    members = {BATCH: Members(), REPEATED: Members(rows="repeated")}
    settings = {
        method: Settings(replace(recipe, members=members.get(method)), samples=samples if method == DROPOUT else 0)
        for method in methods
    }
    return tuple(Row(of(data, model, method), one, seeds) for method, one in settings.items())


def of(data: str, model: str, method: str) -> dict[str, str]:
    """The labels of a method with one size of network on a corpus."""
    return {"data": data, "model": model, "method": method}


def claims(data: str, model: str) -> tuple[View, ...]:
    """The paper's claims about one corpus and one size of network."""
    single, batch, dropout = (of(data, model, method) for method in (SINGLE, BATCH, DROPOUT))
    where = f"({data}, {model})"
    return (
        lower("perplexity", batch, single, f"BatchEnsemble has a lower perplexity than one network {where}."),
        no_better("perplexity", dropout, single, f"MC-dropout is no better than one network {where}.", within=0.05),
        sooner(
            "validation_loss", batch, single, f"It gets there in fewer steps, the paper: 1.5 times {where}.", times=1.5
        ),
        no_better("bleu", batch, single, f"In the end its BLEU is no better {where}.", within=0.5),
    )


def shown(*places: tuple[str, str]) -> tuple[View, ...]:
    """Tables of perplexity and cost, curves of loss and BLEU, and claims about some corpora and networks."""
    rows = ("data", "model", "method")
    quality, cost = ("perplexity", "test_perplexity", "bleu"), ("parameters", "tokens_per_second", "training_seconds")
    return (
        comparison(*quality, rows=rows, name="perplexity", title="Perplexity and BLEU"),
        comparison(*cost, rows=rows, name="cost", title="What they cost"),
        over_steps("validation_loss", x="steps", name="loss", title="Validation loss against steps"),
        over_steps(
            "validation_loss",
            x="seconds",
            xlabel="seconds of training",
            aligned=True,
            name="time",
            title="Validation loss against time",
        ),
        over_steps("bleu_curve", x="bleu_steps", name="bleu", title="BLEU over the course of training"),
        *(claim for place in places for claim in claims(*place)),
    )


RACE = tuple(
    Quantity(f"{what}_to_perplexity", name, digits=0, better="lower")
    for what, name in {"steps": "steps", "tokens": "target tokens", "seconds": "seconds of training"}.items()
)


def until(experiment: Experiment, perplexity: float) -> Experiment:
    """The same trainings, each stopped at a validation perplexity, and a table of what it took to reach it.

    Raises:
        ValueError: the experiment trains no translators, or the perplexity is not a finite number above one.
    """
    if not 1 < perplexity < math.inf:
        raise ValueError(f"a perplexity to stop at lies above 1; got {perplexity:g}")
    if experiment.study is not TRANSLATION:
        raise ValueError(f"{experiment.id} trains no translators, so there is no perplexity to stop at")
    scales: Mapping[Scale, Grid] = {
        scale: replace(grid, rows=tuple(_stopped(row, perplexity) for row in grid.rows if not row.settings.samples))
        for scale, grid in experiment.scales.items()
    }
    title = f"To a validation perplexity of {perplexity:g}"
    table = comparison(*RACE, "perplexity", rows=("data", "model", "method"), name="race", title=title)
    return replace(experiment, scales=scales, show=(table,), published=())


def _stopped(row: Row, perplexity: float) -> Row:
    recipe = replace(row.settings.recipe, until_perplexity=perplexity)
    return replace(row, settings=replace(row.settings, recipe=recipe))
