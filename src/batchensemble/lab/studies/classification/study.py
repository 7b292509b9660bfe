"""Trains a method on images and measures it: on test images, corrupted ones, unseen classes and chosen examples."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import torch

from batchensemble.lab.data import ImageSet
from batchensemble.lab.methods.ensembles import SeededMethod
from batchensemble.lab.records import Record, Run, tupled
from batchensemble.lab.studies.classification.classifier import Classifier
from batchensemble.lab.studies.classification.corrupted import corrupted_sets
from batchensemble.lab.studies.classification.pictures import choose_pictures
from batchensemble.lab.studies.classification.recipe import Recipe
from batchensemble.lab.studies.classification.recorded import RecordedClassifier, arrays_of, as_kept
from batchensemble.lab.studies.classification.trainer import Trainer, trainer_of
from batchensemble.lab.studies.images import UNSEEN, Sets, load_images
from batchensemble.lab.studies.parts import cost_of, weights_folder
from batchensemble.lab.studies.scores import detection, quality, scores
from batchensemble.lab.studies.study import Context, Study
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
        """The settings as plain JSON."""
        against = self.against and self.against.settings()
        return {**vars(self), "recipe": self.recipe.settings(), "against": against}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build the settings from JSON."""
        against = settings["against"] and Recipe.of(settings["against"])
        own = {"recipe": Recipe.of(settings["recipe"]), "against": against}
        return cls(**{**tupled(settings), **own})


def run(run: Run, context: Context) -> Record:
    """Measure the run's recipe, trained now or earlier, or what records have kept of it, and add up its cost."""
    began = time.time()
    settings = Settings.of(run.settings)
    setup = Setup(run, settings, context)
    found = MEASURES[settings.test](setup)
    cost = cost_of(found.of.parts, settings.recipe.method, settings.recipe.epochs, settings.samples)
    return Record(run, {**found.metrics, **cost}, found.of.provenance(since=began), found.arrays)


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything a measurement may use; images are loaded and networks trained when it asks for them."""

    run: Run
    settings: Settings
    context: Context

    def trained_or_recorded(self, recipe: Recipe) -> Classifier | RecordedClassifier:
        """What answers for a recipe on the test set: its networks, or records if its weights are gone."""
        return self._recorded(recipe) or self.trained(recipe)

    def trained(self, recipe: Recipe) -> Classifier:
        """A recipe's classifier, trained now or earlier."""
        seed, trainer = self.run.seed, self.trainer
        parts = trainer.parts(recipe, seed)
        return Classifier(recipe.method, parts, trainer.view, trainer.fabric, self.test, self.settings.samples, seed)

    def _recorded(self, recipe: Recipe) -> RecordedClassifier | None:
        """What records have kept, if any weights are gone and all records are there, none the run's own."""
        parts = recipe.method.parts(self.run.seed)
        if all(weights_folder(self.context, recipe, part).exists() for part in parts):
            return None
        runs = [self._clean(recipe, part) for part in parts]
        return None if self.run in runs else RecordedClassifier.of(runs, self.context.store)

    def _clean(self, recipe: Recipe, part: SeededMethod) -> Run:
        """The run whose record keeps a part's predictions for the same test images."""
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

    of: Classifier | RecordedClassifier
    metrics: dict[str, Any]
    arrays: dict[str, Any]


def measure_clean(setup: Setup) -> Outcome:
    """Measure quality, calibration and diversity on the test set, and keep predictions and logs of training."""
    classifier = setup.trained_or_recorded(setup.settings.recipe)
    prediction, labels = classifier.on_test()
    metrics = {**quality(prediction, labels), **_on_training_images(setup, classifier), "log": classifier.curves()}
    return Outcome(classifier, metrics, arrays_of(prediction, labels))


def _on_training_images(setup: Setup, classifier: Classifier | RecordedClassifier) -> dict[str, float]:
    """The accuracy on training images, for which records keep no predictions."""
    if isinstance(classifier, RecordedClassifier):
        return {}
    # As many training images as there are test images are enough.
    train = setup.trainer.train.take(torch.arange(min(len(setup.test), len(setup.trainer.train))))
    prediction = replace(classifier, samples=1).predict(train)
    return {"train_accuracy": scores(prediction, train.labels.cpu())["accuracy"]}


def measure_corruptions(setup: Setup) -> Outcome:
    """Measure every corruption at every severity, and the clean images as severity zero."""
    classifier = setup.trained(setup.settings.recipe)
    rows = []
    for name, severity, images in corrupted_sets(setup.test, setup.settings.corruptions, setup.context):
        found = scores(classifier.predict(images), images.labels)
        rows.append({"corruption": name, "severity": severity, **found})
    corrupted = [row for row in rows if row["severity"]]
    means = {f"corrupted_{name}": _mean(corrupted, name) for name in ("accuracy", "nll", "brier", "ece")}
    return Outcome(classifier, {"shift": rows, **means}, {})


def _mean(rows: list[dict[str, Any]], name: str) -> float:
    return float(sum(row[name] for row in rows) / len(rows))


def measure_unseen(setup: Setup) -> Outcome:
    """Compare the entropy on the test set with that on images of classes never seen in training."""
    classifier = setup.trained(setup.settings.recipe)
    unseen = UNSEEN[setup.settings.recipe.data](setup.context.data)
    known, unknown = classifier.predict(setup.test), classifier.predict(unseen)
    metrics = {**scores(known, setup.test.labels), **detection(known, unknown), "unseen": unseen.name}
    arrays = {"entropy_known": known.entropy.numpy(), "entropy_unknown": unknown.entropy.numpy()}
    return Outcome(classifier, metrics, arrays)


def measure_pictures(setup: Setup) -> Outcome:
    """Keep a few test images with every member's logits for them, beside those of one network."""
    classifier = setup.trained_or_recorded(setup.settings.recipe)
    prediction, labels = classifier.on_test()
    alone, _ = setup.trained_or_recorded(setup.settings.against or Recipe()).on_test()
    prediction, alone = as_kept(prediction), as_kept(alone)
    rows = choose_pictures(prediction, alone, labels, setup.run.seed)
    arrays = {
        "pictures": setup.test.images[rows].numpy(),
        "labels": labels[rows].numpy(),
        "logits": prediction.outputs[:, rows].numpy(),
        "single": alone.outputs[0, rows].numpy(),
        "rows": rows.numpy(),
    }
    return Outcome(classifier, {**scores(prediction, labels), "class_names": list(setup.test.class_names)}, arrays)


MEASURES: dict[Test, Callable[[Setup], Outcome]] = {
    "clean": measure_clean,
    "corruptions": measure_corruptions,
    "unseen": measure_unseen,
    "pictures": measure_pictures,
}
CLASSIFICATION = Study("classification", run, together=True)
