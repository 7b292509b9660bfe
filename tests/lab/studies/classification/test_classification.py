"""The classification study, on digits: what is recorded is what the predictions say."""

import errno
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import batchensemble as be
from batchensemble.lab.data import load_digits
from batchensemble.lab.methods.ensembles import BatchEnsemble, Dropout, Naive, Single
from batchensemble.lab.models import resnet
from batchensemble.lab.records import Run
from batchensemble.lab.store import Store
from batchensemble.lab.studies.classification import CLASSIFICATION, Recipe, Settings
from batchensemble.lab.studies.classification.trainer import trainer_of
from batchensemble.lab.studies.perform import perform
from batchensemble.lab.studies.study import Context
from batchensemble.lab.training.devices import start_fabric

DIGITS = Recipe(data="digits", depth=8, width=1, epochs=2, batch=64, pad=0, precision="fp32")
FIGURES = Recipe(data="procedural10", depth=8, width=1, epochs=1, batch=8, precision="fp32")


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    return Context(work=tmp_path_factory.mktemp("work"), device="cpu")


def record_of(context, recipe, seed=0, **test):
    run = Run("classification", Settings(recipe, **test), "smoke", seed)
    return CLASSIFICATION.run(run, context)


def trainings(context):
    return {folder.name for folder in (context.work / "weights").iterdir() if folder.name != ".locks"}


def store_of(folder, *records):
    store = Store(folder)
    for record in records:
        store.put(record)
    return store


def test_numbers_are_those_of_the_kept_predictions(context):
    record = record_of(context, replace(DIGITS, method=BatchEnsemble(2)))
    logits = record.arrays["logits"].astype(np.float64)
    probs = np.exp(logits - logits.max(-1, keepdims=True))
    mean = (probs / probs.sum(-1, keepdims=True)).mean(0)
    labels, found = record.arrays["labels"], record.metrics
    assert logits.shape == (2, len(labels), 10)
    assert (labels == load_digits()[1].labels.numpy()).all()
    assert found["accuracy"] == pytest.approx(accuracy_score(labels, mean.argmax(-1)), abs=0.003)
    assert found["nll"] == pytest.approx(log_loss(labels, mean), rel=1e-2)
    assert found["accuracy"] > 0.5
    assert found["passes"] == 2
    assert len(found["log"]) == 1
    assert found["epochs"] == len(found["log"][0]) == 2
    assert found["training_seconds"] > 0


def test_a_naive_ensemble_is_made_of_the_single_networks_of_others(context):
    naive = record_of(context, replace(DIGITS, method=Naive(2)), seed=1)
    before = trainings(context)
    singles = [record_of(context, replace(DIGITS, method=Single()), seed=seed) for seed in (2, 3)]
    assert trainings(context) == before
    logits = np.concatenate([single.arrays["logits"] for single in singles])
    np.testing.assert_array_equal(naive.arrays["logits"], logits)
    assert naive.metrics["parameters"] == 2 * singles[0].metrics["parameters"]
    assert naive.metrics["member_accuracy"] == pytest.approx([single.metrics["accuracy"] for single in singles])


def test_a_naive_ensemble_is_made_of_records_where_weights_are_gone(tmp_path):
    store, method = Store(tmp_path / "results"), Naive(2)
    first, second = (Context(work=tmp_path / work, device="cpu") for work in ("first", "second"))
    runs = [Run("classification", Settings(DIGITS), "smoke", seed) for seed in (0, 1)]
    naive = Run("classification", Settings(replace(DIGITS, method=method)), "smoke")
    singles = [perform(CLASSIFICATION, run, store, first) for run in runs]
    trained = perform(CLASSIFICATION, naive, Store(tmp_path / "others"), first)
    made = perform(CLASSIFICATION, naive, store, second)
    assert not (tmp_path / "second").exists(), "nothing was trained"
    assert made.metrics["parameters"] == sum(single.metrics["parameters"] for single in singles)
    assert made.metrics["log"] == [line for single in singles for line in single.metrics["log"]]
    mixed_store = store_of(tmp_path / "mixed", singles[0], singles[1].untimed())
    mixed = perform(CLASSIFICATION, naive, mixed_store, second)
    assert "training_seconds" not in mixed.metrics
    old = replace(
        singles[0],
        metrics={name: value for name, value in singles[0].metrics.items() if name != "log"},
        provenance=replace(singles[0].provenance, versions={"torch": "2.11.0"}),
    )
    of_old = perform(CLASSIFICATION, naive, store_of(tmp_path / "old", old, singles[1]), second)
    assert of_old.metrics["log"] == singles[1].metrics["log"], "records before there were logs"
    assert of_old.provenance.versions == {"torch": "2.11.0"}, "where its networks were trained"
    assert not (tmp_path / "second").exists(), "nothing was trained"
    missing = {name for name in trained.metrics if name not in made.metrics}
    assert missing == {"train_accuracy"}
    for name in ("accuracy", "nll", "ece", "member_accuracy", "disagreement", "train_loss", "passes", "epochs"):
        assert made.metrics[name] == pytest.approx(trained.metrics[name], abs=2e-3), name


@pytest.mark.parametrize("method", [Single(), BatchEnsemble(2, init="ones")])
def test_tuning_begins_with_the_backbone_of_its_start(context, method):
    tuned = replace(DIGITS, method=method, start=DIGITS, lr=1e-20, epochs=1)
    trainer = trainer_of(tuned, load_digits()[0], start_fabric("cpu", 1, "fp32"), context)
    first, made = (trainer.parts(recipe, 0)[0].model for recipe in (DIGITS, tuned))
    plain = made.extract(1) if isinstance(made, be.Ensemble) else made
    scratch = resnet(DIGITS.depth, DIGITS.width, 10, channels=1, generator=torch.Generator().manual_seed(0))
    for name, parameter in plain.backbone.named_parameters():
        torch.testing.assert_close(parameter, first.backbone.get_parameter(name), msg=name)
    for name, parameter in plain.head.named_parameters():
        torch.testing.assert_close(parameter, scratch.head.get_parameter(name), msg="the classes are others")


def test_a_recipe_says_nothing_of_a_start_from_scratch():
    tuned = replace(DIGITS, start=FIGURES)
    assert "start" not in DIGITS.settings(), "records from before there was any fine-tuning stay valid"
    assert [Recipe.of(one.settings()) for one in (DIGITS, tuned)] == [DIGITS, tuned]


def test_pictures_stand_beside_a_recorded_rival(tmp_path):
    store, recipe = Store(tmp_path / "results"), replace(FIGURES, method=BatchEnsemble(2))
    first, second = (Context(work=tmp_path / work, device="cpu") for work in ("first", "second"))
    perform(CLASSIFICATION, Run("classification", Settings(FIGURES), "smoke"), store, first)
    maps = Run("classification", Settings(recipe, test="pictures", against=FIGURES), "smoke")
    beside_weights = perform(CLASSIFICATION, maps, Store(tmp_path / "others"), first)
    beside_record = perform(CLASSIFICATION, maps, store, second)
    assert len(trainings(second)) == 1, "the rival was not trained again"
    np.testing.assert_array_equal(beside_record.arrays["single"], beside_weights.arrays["single"])


@pytest.mark.parametrize("method", [BatchEnsemble(2), Naive(2)])
def test_pictures_are_made_of_records_where_weights_are_gone(method, tmp_path):
    store, recipe = Store(tmp_path / "results"), replace(FIGURES, method=method)
    first, second = (Context(work=tmp_path / work, device="cpu") for work in ("first", "second"))
    for one, seed in ((FIGURES, 0), (FIGURES, 1), (recipe, 0)):
        perform(CLASSIFICATION, Run("classification", Settings(one), "smoke", seed), store, first)
    maps = Run("classification", Settings(recipe, test="pictures", against=FIGURES), "smoke")
    trained = perform(CLASSIFICATION, maps, Store(tmp_path / "others"), first)
    made = perform(CLASSIFICATION, maps, store, second)
    assert not (tmp_path / "second").exists(), "nothing was trained"
    assert made.metrics.keys() == trained.metrics.keys()
    assert made.metrics["parameters"] == trained.metrics["parameters"]
    np.testing.assert_array_equal(made.arrays["rows"], trained.arrays["rows"])
    np.testing.assert_array_equal(made.arrays["logits"], trained.arrays["logits"])


def test_kept_predictions_stand_for_as_many_samples_as_were_drawn(tmp_path):
    store, recipe = Store(tmp_path / "results"), replace(FIGURES, method=Dropout(rate=0.5))
    first, second = (Context(work=tmp_path / work, device="cpu") for work in ("first", "second"))
    for samples in (3, 8):
        kept = Settings(recipe, samples=samples)
        perform(CLASSIFICATION, Run("classification", kept, "smoke"), store, first)
    for samples in (3, 8, 2):
        assert not (tmp_path / "second").exists(), "nothing was trained yet"
        asked = Settings(recipe, test="pictures", against=recipe, samples=samples)
        maps = perform(CLASSIFICATION, Run("classification", asked, "smoke"), store, second)
        assert len(maps.arrays["logits"]) == samples
    assert len(trainings(second)) == 1, "neither three nor eight samples stand for two"


def test_a_record_is_not_made_of_itself(tmp_path):
    first, second = (Context(work=tmp_path / work, device="cpu") for work in ("first", "second"))
    record = record_of(first, FIGURES)
    again = record_of(replace(second, store=store_of(tmp_path / "results", record)), FIGURES)
    assert trainings(second) == trainings(first)
    assert again.metrics["train_accuracy"] == record.metrics["train_accuracy"]


def test_samples_share_a_training_and_are_drawn_by_seed(context):
    recipe = replace(DIGITS, method=Dropout(rate=0.5))
    few = record_of(context, recipe, samples=2)
    before = trainings(context)
    many, again = (record_of(context, recipe, samples=5) for _ in range(2))
    assert trainings(context) == before
    assert (few.metrics["passes"], many.metrics["passes"]) == (2, 5)
    np.testing.assert_array_equal(many.arrays["logits"], again.arrays["logits"])
    assert few.metrics["disagreement"] > 0


def test_corruption_unseen_classes_and_pictures_from_one_training(context):
    recipe = replace(FIGURES, method=BatchEnsemble(2))
    shifted = record_of(context, recipe, test="corruptions", corruptions=("contrast",), rows=10).metrics["shift"]
    before = trainings(context)
    assert [(row["corruption"], row["severity"]) for row in shifted] == [
        ("none", 0), *(("contrast", severity) for severity in range(1, 6))
    ]  # fmt: skip
    unseen = record_of(context, recipe, test="unseen")
    known, unknown = unseen.arrays["entropy_known"], unseen.arrays["entropy_unknown"]
    truth = np.r_[np.zeros(len(known)), np.ones(len(unknown))]
    assert unseen.metrics["auroc"] == pytest.approx(roc_auc_score(truth, np.r_[known, unknown]), abs=0.01)
    assert trainings(context) == before

    maps = record_of(context, recipe, test="pictures", against=FIGURES)
    shown = len(maps.arrays["rows"])
    assert maps.arrays["pictures"].shape == (shown, 3, 32, 32)
    assert maps.arrays["logits"].shape == (2, shown, 10)
    assert maps.arrays["single"].shape == (shown, 10)
    telling = maps.arrays["single"].argmax(-1) != maps.arrays["labels"]
    assert telling[12:].all()


def test_a_disk_that_fills_up_while_training_loses_nothing(tmp_path, monkeypatch):
    """The run fails with a word about the disk, and the next one goes on from the last whole checkpoint."""
    context, store = Context(work=tmp_path / "work", device="cpu"), Store(tmp_path / "results")
    run = Run("classification", Settings(replace(DIGITS, epochs=3)), "smoke")

    def fill(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("torch.save", fill)
        with pytest.raises(OSError, match="the disk is full"):
            perform(CLASSIFICATION, run, store, context)
    assert not store.has(run)
    assert perform(CLASSIFICATION, run, store, context).metrics["accuracy"] > 0.5
    assert not list(tmp_path.rglob("*.part"))
