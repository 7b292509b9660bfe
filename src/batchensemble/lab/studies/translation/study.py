"""Trains a translator and measures perplexity, BLEU and how fast it learns."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Self

from batchensemble.lab.data.text import Prepared
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run, tupled
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.studies.translation.corpora import load_text
from batchensemble.lab.studies.translation.evaluation import Evaluator
from batchensemble.lab.studies.translation.recipe import Recipe
from batchensemble.lab.studies.translation.trainer import Trained, Trainer
from batchensemble.lab.studies.translation.translator import EXTRA, NEEDED
from batchensemble.lab.training.devices import start_fabric

RATES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""The paper's grid of dropout rates at test time."""


@dataclass(frozen=True)
class Settings:
    """What to train and what to measure; runs that differ only in what they measure share the training.

    Args:
        recipe: how the translator is trained.
        samples: dropout samples at test time; zero to use the network without dropout.
        rates: rates of that dropout; the best one on the validation set is reported.
    """

    recipe: Recipe = field(default_factory=Recipe)
    samples: int = 0
    rates: tuple[float, ...] = RATES

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build the settings from JSON."""
        return cls(**{**tupled(settings), "recipe": Recipe.of(settings["recipe"])})


def run(run: Run, context: Context) -> Record:
    """Train the run's recipe, unless it is trained already, and measure it."""
    began = time.time()
    settings = Settings.of(run.settings)
    recipe = settings.recipe
    fabric = start_fabric(context.device, context.devices, recipe.precision)
    trainer = Trainer(fabric, context, load_text(recipe.data, context.data, context.work))
    trained = trainer.train(recipe, run.seed)
    measured = measure_dropout if settings.samples else measure
    metrics = {
        **measured(trainer, trained, settings, run.seed),
        "parameters": sum(parameter.numel() for parameter in trained.model.parameters()),
        "weights": trained.folder.name,
        "lines": trainer.data.tallies,
    }
    return Record(run, metrics, Provenance.now(hardware(fabric.device, fabric.world_size), since=began))


def measure(trainer: Trainer, trained: Trained, settings: Settings, seed: int) -> dict[str, Any]:
    """Measure perplexity on validation (as the paper does) and test set, BLEU on the test set, and learning speed."""
    valid, test = (Evaluator(text, trainer.fabric).likelihood(trained.model) for text in _sets(trainer))
    score, signature = trainer.fabric.broadcast(_bleu(trainer, trained))
    learnt = learning(trained.log, settings.recipe, trainer.fabric.world_size)
    # A training that stopped early may already have been scored after its last step.
    scores = dict(zip(learnt["bleu_steps"], learnt["bleu_curve"], strict=True)) | {learnt["steps"][-1]: score}
    return {
        **learnt,
        **to_perplexity(trained.log, settings.recipe, learnt),
        "bleu_steps": list(scores),
        "bleu_curve": list(scores.values()),
        "perplexity": valid.perplexity,
        "nll": valid.nll,
        "member_nll": valid.member_nll,
        "test_perplexity": test.perplexity,
        "bleu": score,
        "bleu_signature": signature,
        "passes": 1,
    }


def measure_dropout(trainer: Trainer, trained: Trained, settings: Settings, seed: int) -> dict[str, Any]:
    """Measure MC-dropout: perplexity at the best rate, and at each."""
    valid, test = (Evaluator(text, trainer.fabric) for text in _sets(trainer))
    found = valid.best_dropout(trained.model, settings.rates, settings.samples, seed)
    rate, best = next(iter(found.items()))
    on_test = test.dropout_likelihood(trained.model, rate, settings.samples, seed)
    return {
        "perplexity": best.perplexity,
        "nll": best.nll,
        "test_perplexity": on_test.perplexity,
        "rate": rate,
        "perplexity_by_rate": {str(one): found[one].perplexity for one in settings.rates},
        "passes": settings.samples,
    }


def learning(log: Sequence[Mapping[str, float]], recipe: Recipe, processes: int) -> dict[str, Any]:
    """Curves against steps, target tokens of all processes, and time (without validation)."""
    seconds = list(accumulate(line["seconds"] - line["evaluation_seconds"] for line in log))
    tokens = list(accumulate(round(line["tokens"] * recipe.epoch * processes) for line in log))
    steps = [recipe.epoch * (place + 1) for place in range(len(log))]
    with_bleu = [(step, line["bleu"]) for step, line in zip(steps, log, strict=True) if "bleu" in line]
    return {
        "steps": steps,
        "tokens": tokens,
        "seconds": seconds,
        "validation_loss": [line["validation_nll"] for line in log],
        "training_loss": [line["nll"] for line in log],
        "bleu_steps": [step for step, _ in with_bleu],
        "bleu_curve": [score for _, score in with_bleu],
        "training_seconds": seconds[-1],
        "tokens_per_second": tokens[-1] / seconds[-1],
    }


def to_perplexity(
    log: Sequence[Mapping[str, float]], recipe: Recipe, learnt: Mapping[str, Any]
) -> dict[str, float | None]:
    """Steps, tokens and seconds to the target perplexity; `None` if it was not reached."""
    target = recipe.until_perplexity
    if target is None:
        return {}
    there = log[-1]["validation_perplexity"] <= target
    return {f"{what}_to_perplexity": learnt[what][-1] if there else None for what in ("steps", "tokens", "seconds")}


def _sets(trainer: Trainer) -> tuple[Prepared, Prepared]:
    return trainer.data.valid, trainer.data.test


def _bleu(trainer: Trainer, trained: Trained) -> tuple[float, str]:
    return trainer.test_bleu(trained.translator) if trainer.fabric.is_global_zero else (0.0, "")


TRANSLATION = Study("translation", run, together=True, extra=EXTRA, packages=NEEDED)
