"""Trains a method on images and measures it: on test images, corrupted ones, unseen classes and chosen examples."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import torch

from batchensemble.lab.data import ImageSet
from batchensemble.lab.methods.ensembles import SeededMethod
from batchensemble.lab.records import Record, Run
from batchensemble.lab.studies.classifier import Classifier
from batchensemble.lab.studies.corrupted import corrupted_sets
from batchensemble.lab.studies.images import UNSEEN, Sets, load_images
from batchensemble.lab.studies.kept import Kept, arrays_of
from batchensemble.lab.studies.parts import cost_of, weights_folder
from batchensemble.lab.studies.pictures import choose_pictures
from batchensemble.lab.studies.recipe import Recipe
from batchensemble.lab.studies.scores import detection, quality, scores
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.studies.trainer import Trainer, trainer_of
from batchensemble.lab.training.devices import start_fabric

Test = Literal["clean", "corruptions", "unseen", "pictures"]


@dataclass(frozen=True)
class Settings:
    """What to train and what to measure; runs that differ only in what they measure share the training.

    Args:
        recipe: how the classifier is trained.
        test: what it is measured on.
        samples: number of dropout samples.
        corruptions: names of the corruptions, for `corruptions`; empty for all.
        rows: number of test images; all by default.
        against: recipe of a rival to compare with, for `pictures`.
    """

    recipe: Recipe = field(default_factory=Recipe)
    test: Test = "clean"
    samples: int = 8
    corruptions: tuple[str, ...] = ()
    rows: int | None = None
    against: Recipe | None = None

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain JSON."""
        against = self.against and self.against.settings()
        return {**vars(self), "recipe": self.recipe.settings(), "against": against}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build the settings from JSON."""
        against = settings["against"] and Recipe.of(settings["against"])
        own = {"recipe": Recipe.of(settings["recipe"]), "against": against}
        return cls(**{**settings, **own, "corruptions": tuple(settings["corruptions"])})


def run(run: Run, context: Context) -> Record:
    """Measure the run's recipe, trained now or earlier, or what records have kept of it, and add up its cost."""
    began = time.time()
    settings = Settings.of(run.settings)
    bench = Bench(run, settings, context)
    found = MEASURES[settings.test](bench)
    cost = cost_of(found.of.parts, settings.recipe.method, settings.recipe.epochs, settings.samples)
    return Record(run, {**found.metrics, **cost}, found.of.provenance(since=began), found.arrays)


@dataclass(frozen=True, eq=False)
class Bench:
    """Everything a measurement may use; images are loaded and networks trained when it asks for them."""

    run: Run
    settings: Settings
    context: Context

    def trained_or_kept(self, recipe: Recipe) -> Classifier | Kept:
        """Return what answers for a recipe on the test set: its networks, or records if its weights are gone."""
        return self._kept(recipe) or self.trained(recipe)

    def trained(self, recipe: Recipe) -> Classifier:
        """Return a recipe's classifier, trained now or earlier."""
        seed, trainer = self.run.seed, self.trainer
        parts = trainer.parts(recipe, seed)
        return Classifier(recipe.method, parts, trainer.view, trainer.fabric, self.test, self.settings.samples, seed)

    def _kept(self, recipe: Recipe) -> Kept | None:
        """Return what records have kept, if any weights are gone and all records are there, none the run's own."""
        parts = recipe.method.parts(self.run.seed)
        if all(weights_folder(self.context, recipe, part).exists() for part in parts):
            return None
        runs = [self._clean(recipe, part) for part in parts]
        return None if self.run in runs else Kept.of(runs, self.context.store)

    def _clean(self, recipe: Recipe, part: SeededMethod) -> Run:
        """Return the run whose record keeps a part's predictions for the same test images."""
        own = replace(recipe, method=part.method)
        settings = replace(self.settings, recipe=own, test="clean", against=None)
        return replace(self.run, settings=settings, seed=part.seed)

    @cached_property
    def trainer(self) -> Trainer:
        """Train networks on the training images."""
        recipe, context = self.settings.recipe, self.context
        fabric = start_fabric(context.device, context.devices, recipe.precision)
        return trainer_of(recipe, self._images[0], fabric, context)

    @cached_property
    def test(self) -> ImageSet:
        """The test images."""
        test, rows = self._images[1], self.settings.rows
        return test if rows is None else test.take(torch.arange(rows))

    @cached_property
    def _images(self) -> Sets:
        return load_images(self.settings.recipe.data, self.context.data)


class Outcome(NamedTuple):
    """What a measurement found, and of what."""

    of: Classifier | Kept
    metrics: dict[str, Any]
    arrays: dict[str, Any]


def measure_clean(bench: Bench) -> Outcome:
    """Measure quality, calibration and diversity on the test set, and keep predictions and logs of training."""
    ours = bench.trained_or_kept(bench.settings.recipe)
    prediction, labels = ours.on_test()
    metrics = {**quality(prediction, labels), **_on_training_images(bench, ours), "log": ours.curves()}
    return Outcome(ours, metrics, arrays_of(prediction, labels))


def _on_training_images(bench: Bench, ours: Classifier | Kept) -> dict[str, float]:
    """Return the accuracy on training images, for which records keep no predictions."""
    if isinstance(ours, Kept):
        return {}
    # As many training images as there are test images are enough.
    train = bench.trainer.train.take(torch.arange(min(len(bench.test), len(bench.trainer.train))))
    prediction = replace(ours, samples=1).predict(train)
    return {"train_accuracy": scores(prediction, train.labels.cpu())["accuracy"]}


def measure_corruptions(bench: Bench) -> Outcome:
    """Measure every corruption at every severity, and the clean images as severity zero."""
    ours = bench.trained(bench.settings.recipe)
    rows = []
    for name, severity, images in corrupted_sets(bench.test, bench.settings.corruptions, bench.context):
        found = scores(ours.predict(images), images.labels)
        rows.append({"corruption": name, "severity": severity, **found})
    corrupted = [row for row in rows if row["severity"]]
    means = {f"corrupted_{name}": _mean(corrupted, name) for name in ("accuracy", "nll", "brier", "ece")}
    return Outcome(ours, {"shift": rows, **means}, {})


def _mean(rows: list[dict[str, Any]], name: str) -> float:
    return float(sum(row[name] for row in rows) / len(rows))


def measure_unseen(bench: Bench) -> Outcome:
    """Compare the entropy on the test set with that on images of classes never seen in training."""
    ours = bench.trained(bench.settings.recipe)
    unseen = UNSEEN[bench.settings.recipe.data](bench.context.data)
    known, unknown = ours.predict(bench.test), ours.predict(unseen)
    metrics = {**scores(known, bench.test.labels), **detection(known, unknown), "unseen": unseen.name}
    arrays = {"entropy_known": known.entropy.numpy(), "entropy_unknown": unknown.entropy.numpy()}
    return Outcome(ours, metrics, arrays)


def measure_pictures(bench: Bench) -> Outcome:
    """Keep a few test images with every member's logits for them, beside those of one network."""
    ours = bench.trained_or_kept(bench.settings.recipe)
    prediction, labels = ours.on_test()
    alone, _ = bench.trained_or_kept(bench.settings.against or Recipe()).on_test()
    rows = choose_pictures(prediction, alone, labels, bench.run.seed)
    arrays = {
        "pictures": bench.test.images[rows].numpy(),
        "labels": labels[rows].numpy(),
        "logits": prediction.outputs[:, rows].numpy(),
        "single": alone.outputs[0, rows].numpy(),
        "rows": rows.numpy(),
    }
    return Outcome(ours, {**scores(prediction, labels), "class_names": list(bench.test.class_names)}, arrays)


MEASURES: dict[Test, Callable[[Bench], Outcome]] = {
    "clean": measure_clean,
    "corruptions": measure_corruptions,
    "unseen": measure_unseen,
    "pictures": measure_pictures,
}
CLASSIFICATION = Study("classification", run, together=True)
