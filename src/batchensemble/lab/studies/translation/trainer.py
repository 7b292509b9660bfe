"""Turns recipes into trained translators; each is trained once and found again by whoever asks for the same one."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

import batchensemble as be
from batchensemble.disk import written_whole
from batchensemble.lab.data.text import Buckets
from batchensemble.lab.models.transformer import CROSS_ATTENTION, SELF_ATTENTION, SIZES, transformer
from batchensemble.lab.records import content_key
from batchensemble.lab.studies.study import Context
from batchensemble.lab.studies.translation.batches import TokenBatches
from batchensemble.lab.studies.translation.corpora import TextData
from batchensemble.lab.studies.translation.evaluation import Evaluator
from batchensemble.lab.studies.translation.objective import objective
from batchensemble.lab.studies.translation.recipe import Recipe
from batchensemble.lab.studies.translation.translator import Translator, bleu
from batchensemble.lab.training.devices import locked_together
from batchensemble.lab.training.fit import TrainingJob, Workplace, fit
from batchensemble.lab.training.optimizers import adam
from batchensemble.lab.training.schedules import inverse_square_root

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Line = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained translator in evaluation mode, the log of its training, and its folder."""

    translator: Translator
    log: list[dict[str, float]]
    folder: Path

    @property
    def model(self) -> nn.Module:
        """The network or the ensemble."""
        return self.translator.model


@dataclass(frozen=True, eq=False)
class Trainer:
    """Trains recipes on one corpus.

    Args:
        fabric: device, precision and processes.
        context: where to work.
        data: the corpus.
    """

    fabric: "Fabric"
    context: Context
    data: TextData

    def train(self, recipe: Recipe, seed: int) -> Trained:
        """A translator, trained in a folder named by everything its weights depend on."""
        key = content_key({"translation": recipe, "seed": seed})
        folder = self.context.work / "weights" / key
        kind = "single" if recipe.members is None else f"{recipe.members.count} members"
        # Compiling a step for every shape of batch would take longer than training.
        place = Workplace(self.fabric, folder, self.context.progress, compiled=False)
        with locked_together(self.fabric, folder, wait=self.context.wait):
            self._claim(folder)
            training = self._training(recipe, seed)
            log = fit(training, place, f"{recipe.data}, {recipe.size}, {kind}, seed {seed}")
            translator = self._translator(training.model.eval())
            if self.fabric.is_global_zero:
                translator.save(folder / "translator")
        return Trained(translator, log, folder)

    def _claim(self, folder: Path) -> None:
        """Record the text that the folder is trained on; refuse one trained on another, whose token ids differ."""
        note = folder / "text.json"
        if note.exists() and json.loads(note.read_text()) != self.data.digest:
            raise ValueError(f"{folder} was trained on another text of the same name: delete it to train on this one")
        if self.fabric.is_global_zero:
            with written_whole(note) as beside:
                beside.write_text(json.dumps(self.data.digest))

    def _training(self, recipe: Recipe, seed: int) -> TrainingJob:
        model = build(recipe, len(self.data.vocabulary), self._longest, seed).to(self.fabric.device)
        scale = 1.0 if recipe.members is None else recipe.members.fast_lr_scale
        top = recipe.lr * SIZES[recipe.size].width ** -0.5 * recipe.warmup**-0.5
        target = recipe.until_perplexity
        return TrainingJob(
            model,
            loss=objective(recipe.members, recipe.smoothing),
            batches=self._batches(recipe, seed),
            optimizer=adam(be.parameter_groups(model, top, 0.0, fast_lr_scale=scale), self.fabric.device),
            schedule=inverse_square_root(recipe.warmup, recipe.epoch),
            epochs=recipe.epochs,
            seed=seed,
            after_epoch=partial(self._validate, model, recipe),
            until=None if target is None else lambda line: line["validation_perplexity"] <= target,
        )

    @property
    def _longest(self) -> int:
        """The network's number of positions: twice the training length, since translations may be longer."""
        return 2 * int(max(self.data.train.lengths.max(), 32))

    def _batches(self, recipe: Recipe, seed: int) -> TokenBatches:
        fabric, train = self.fabric, self.data.train
        buckets = Buckets(train.lengths, recipe.tokens)
        return TokenBatches(train, buckets, recipe.epoch, seed, fabric.device, fabric.global_rank, fabric.world_size)

    def _validate(self, model: nn.Module, recipe: Recipe, epoch: int) -> dict[str, float]:
        """Measure perplexity on the validation set and, every `bleu_every` epochs, BLEU on the test set."""
        began = time.perf_counter()
        found = Evaluator(self.data.valid, self.fabric).likelihood(model)
        numbers = {"validation_nll": found.nll, "validation_perplexity": found.perplexity}
        if (epoch + 1) % recipe.bleu_every == 0 and epoch + 1 < recipe.epochs and self.fabric.is_global_zero:
            numbers["bleu"] = self.test_bleu(self._translator(model))[0]
        model.train()
        return {**numbers, "evaluation_seconds": round(time.perf_counter() - began, 4)}

    def test_bleu(self, translator: Translator) -> tuple[float, str]:
        """BLEU on the test set, and its signature."""
        return bleu(translator.translate(self.data.test.text("source")), self.data.test.text("target"))

    def _translator(self, model: nn.Module) -> Translator:
        return Translator(model, self.data.vocabulary, autocast=self.fabric.autocast)


def build(recipe: Recipe, vocabulary: int, longest: int, seed: int) -> nn.Module:
    """Build the untrained network, converted if the recipe has members; either way it starts from the same weights."""
    generator = torch.Generator().manual_seed(seed)
    rates: dict[str, Any] = {"dropout": recipe.dropout, "inner_dropout": recipe.inner_dropout}
    net: nn.Module = transformer(vocabulary, recipe.size, **rates, longest=longest, generator=generator)
    if recipe.members is None:
        return net
    members = recipe.members
    where = SELF_ATTENTION + CROSS_ATTENTION if members.cross_attention else SELF_ATTENTION
    return be.convert(net, members.count, include=where, init=members.init, copy=False, generator=generator)
