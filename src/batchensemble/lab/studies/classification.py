"""Trains a method on images and measures it: on test images, corrupted ones, unseen classes and chosen examples."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import torch

from batchensemble import Prediction
from batchensemble.lab.data import ImageSet
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run
from batchensemble.lab.studies.classifier import Classifier
from batchensemble.lab.studies.corrupted import corrupted_sets
from batchensemble.lab.studies.images import UNSEEN, load_images
from batchensemble.lab.studies.kept import arrays_of, joined, measured, prediction_of, record_with_predictions
from batchensemble.lab.studies.parts import cost_of, weights_folder
from batchensemble.lab.studies.pictures import choose_pictures
from batchensemble.lab.studies.recipe import Recipe
from batchensemble.lab.studies.scores import detection, quality, scores
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.studies.trainer import Trainer, trainer_of
from batchensemble.lab.training.devices import start_fabric

Test = Literal["clean", "corruptions", "unseen", "pictures"]
CURVE = 50  # most epochs of a training's log that a record keeps


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
        """Returns the settings as plain JSON."""
        against = self.against and self.against.settings()
        return {**vars(self), "recipe": self.recipe.settings(), "against": against}

    def need_predictions_only(self) -> bool:
        """Returns whether predictions on the whole test set, which records keep, are all that is measured."""
        return self.test in ("clean", "pictures") and replace(self, test="clean", against=None) == Settings(self.recipe)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Builds the settings from JSON."""
        against = settings["against"] and Recipe.of(settings["against"])
        own = {"recipe": Recipe.of(settings["recipe"]), "against": against}
        return cls(**{**settings, **own, "corruptions": tuple(settings["corruptions"])})


@dataclass(frozen=True, eq=False)
class Bench:
    """Everything a measurement may use."""

    run: Run
    settings: Settings
    context: Context
    trainer: Trainer
    test: ImageSet

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.run.seed

    def classifier(self, recipe: Recipe) -> Classifier:
        """Returns a recipe's classifier, trained now or earlier."""
        parts = self.trainer.parts(recipe, self.seed)
        view, fabric = self.trainer.view, self.trainer.fabric
        return Classifier(recipe.method, parts, view, fabric, self.settings.samples, self.seed)

    def rival(self, recipe: Recipe) -> Prediction:
        """Returns another recipe's predictions on the test set, from its records if its weights are gone."""
        recorded = _recorded(self.run, recipe, self.context)
        if recorded and self.settings.rows is None:
            return prediction_of(recorded)[0]
        return self.classifier(recipe).predict(self.test)


Outcome = tuple[dict[str, Any], dict[str, Any]]
"""Metrics and arrays."""


def run(run: Run, context: Context) -> Record:
    """Trains the run's recipe, unless it is trained already, and measures it."""
    began = time.time()
    settings = Settings.of(run.settings)
    networks = _recorded(run, settings.recipe, context) if settings.need_predictions_only() else []
    if networks and settings.test == "clean":
        return joined(run, networks)
    bench = _bench(run, settings, context)
    if networks:
        return measured(run, networks, *pictures(bench, prediction_of(networks)[0]))
    classifier = bench.classifier(settings.recipe)
    metrics, arrays = MEASURES[settings.test](bench, classifier)
    log = {"log": [_thinned(part.log) for part in classifier.parts]} if settings.test == "clean" else {}
    cost = cost_of(classifier.parts, settings.recipe.method, settings.recipe.epochs, settings.samples)
    fabric = bench.trainer.fabric
    where = hardware(fabric.device, fabric.world_size)
    return Record(run, {**metrics, **cost, **log}, Provenance.now(where, since=began), arrays)


def _recorded(run: Run, recipe: Recipe, context: Context) -> list[Record]:
    """Returns the records of a recipe's networks if weights are gone and every record has its predictions."""
    parts = recipe.method.parts(run.seed)
    if all(weights_folder(context, recipe, part).exists() for part in parts):
        return []
    recipes = [(replace(recipe, method=part.method), part.seed) for part in parts]
    runs = [replace(run, settings=Settings(one).settings(), seed=seed) for one, seed in recipes]
    records = [record_with_predictions(context.store, one) for one in runs if one != run]
    found = [record for record in records if record is not None]
    return found if len(found) == len(parts) else []


def _bench(run: Run, settings: Settings, context: Context) -> Bench:
    recipe = settings.recipe
    fabric = start_fabric(context.device, context.devices, recipe.precision)
    everything, test = load_images(recipe.data, context.data)
    trainer = trainer_of(recipe, everything, fabric, context)
    shown = test if settings.rows is None else test.take(torch.arange(settings.rows))
    return Bench(run, settings, context, trainer, shown)


def measure_clean(bench: Bench, classifier: Classifier) -> Outcome:
    """Measures quality, calibration and diversity on the test set, and accuracy on training images."""
    prediction, labels = classifier.predict(bench.test), bench.test.labels
    # As many training images as there are test images are enough for the training accuracy.
    train = bench.trainer.train.take(torch.arange(min(len(bench.test), len(bench.trainer.train))))
    known = scores(replace(classifier, samples=1).predict(train), train.labels.cpu())
    return {**quality(prediction, labels), "train_accuracy": known["accuracy"]}, arrays_of(prediction, labels)


def measure_corruptions(bench: Bench, classifier: Classifier) -> Outcome:
    """Measures every corruption at every severity, and the clean images as severity zero."""
    names = bench.settings.corruptions
    rows = []
    for name, severity, images in corrupted_sets(bench.test, names, bench.context):
        found = scores(classifier.predict(images), images.labels)
        rows.append({"corruption": name, "severity": severity, **found})
    corrupted = [row for row in rows if row["severity"]]
    means = {f"corrupted_{name}": _mean(corrupted, name) for name in ("accuracy", "nll", "brier", "ece")}
    return {"shift": rows, **means}, {}


def measure_unseen(bench: Bench, classifier: Classifier) -> Outcome:
    """Compares the entropy on the test set with that on images of classes never seen in training."""
    unseen = UNSEEN[bench.settings.recipe.data](bench.context.data)
    known, unknown = classifier.predict(bench.test), classifier.predict(unseen)
    arrays = {"entropy_known": known.entropy.numpy(), "entropy_unknown": unknown.entropy.numpy()}
    return {**scores(known, bench.test.labels), **detection(known, unknown), "unseen": unseen.name}, arrays


def measure_pictures(bench: Bench, classifier: Classifier) -> Outcome:
    """Keeps a few test images with every member's logits for them, beside those of one network."""
    return pictures(bench, classifier.predict(bench.test))


def pictures(bench: Bench, ours: Prediction) -> Outcome:
    """The same, for predictions made now or earlier."""
    alone = bench.rival(bench.settings.against or Recipe())
    rows = choose_pictures(ours, alone, bench.test.labels, bench.seed)
    arrays = {
        "pictures": bench.test.images[rows].numpy(),
        "labels": bench.test.labels[rows].numpy(),
        "logits": ours.outputs[:, rows].numpy(),
        "single": alone.outputs[0, rows].numpy(),
        "rows": rows.numpy(),
    }
    return {**scores(ours, bench.test.labels), "class_names": list(bench.test.class_names)}, arrays


MEASURES: dict[Test, Callable[[Bench, Classifier], Outcome]] = {
    "clean": measure_clean,
    "corruptions": measure_corruptions,
    "unseen": measure_unseen,
    "pictures": measure_pictures,
}


def _mean(rows: list[dict[str, Any]], name: str) -> float:
    return float(sum(row[name] for row in rows) / len(rows))


def _thinned(log: list[dict[str, float]]) -> list[dict[str, float]]:
    """Returns evenly spaced epochs of a training's log, including the last."""
    every = -(-len(log) // CURVE)
    names = ("epoch", "cross_entropy", "accuracy")
    return [{name: round(line[name], 5) for name in names} for line in log[::-1][::every]][::-1]


CLASSIFICATION = Study("classification", run)
