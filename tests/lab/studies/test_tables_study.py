"""The study of tables: what is recorded is what the predictions say, and batches are what methods ask for."""

from dataclasses import replace

import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss

from batchensemble.lab.data import load_table
from batchensemble.lab.methods.ensembles import BatchEnsemble, Dropout, Naive, Single, Stream
from batchensemble.lab.records import Run, plain
from batchensemble.lab.studies.study import Context
from batchensemble.lab.studies.tables import TABLES, Settings, TableBatches, predict_rows
from batchensemble.lab.studies.tables import _trained as trained
from batchensemble.lab.training.devices import start_fabric

TOY = Settings(data="toy", hidden=(16, 16), epochs=3, batch=32, lr=0.01, samples=4)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    return Context(work=tmp_path_factory.mktemp("work"), device="cpu")


def record_of(context, settings, seed=0):
    return TABLES.run(Run("tables", settings, "smoke", seed), context)


@pytest.mark.parametrize("method", [Single(), Naive(2), Dropout(0.1, 0.1), BatchEnsemble(2, rows="repeated")])
def test_settings_survive_as_json(method):
    settings = replace(TOY, method=method)
    assert Settings.of(plain(settings.settings())) == settings


def test_numbers_are_those_of_the_predictions(context):
    settings = replace(TOY, method=BatchEnsemble(2))
    found = record_of(context, settings, seed=3).metrics
    train, test = load_table("toy")
    fabric = start_fabric("cpu")
    parts = [trained(settings, part, train, fabric, context) for part in settings.method.parts(3)]
    probs = predict_rows(settings, parts, test, fabric, seed=3).outputs.double().softmax(-1).mean(0)
    assert found["accuracy"] == pytest.approx(accuracy_score(test.labels, probs.argmax(1)))
    assert found["nll"] == pytest.approx(log_loss(test.labels, probs), rel=1e-5)
    assert found["train_accuracy"] > 0.5  # three classes
    assert (found["passes"], found["epochs"], found["parameters"]) == (2, 3, parts[0].parameters)


def test_members_learn_and_so_does_every_method(context):
    for method in (Single(), Dropout(0.1, 0.1), BatchEnsemble(2), BatchEnsemble(2, rows="repeated"), Naive(2)):
        found = record_of(context, replace(TOY, method=method)).metrics
        assert found["accuracy"] > 0.45, method
        assert found["train_loss"] < 1.0, method  # guessing: log 3 = 1.1


def test_a_naive_ensemble_is_made_of_single_networks(context):
    folders = context.work / "weights"
    for seed in (0, 1):
        record_of(context, TOY, seed)
    before = set(folders.iterdir())
    record_of(context, replace(TOY, method=Naive(2)))
    assert set(folders.iterdir()) == before


def test_dropout_samples_are_those_of_the_seed(context):
    settings = replace(TOY, method=Dropout(0.3, 0.3))
    first, again, other = (record_of(context, settings, seed).metrics["nll"] for seed in (0, 0, 1))
    assert first == again != other


def test_an_epoch_shows_every_row_once_but_for_a_remainder():
    train, _ = load_table("toy")
    batches = TableBatches(train, (Stream(5, 5),), 50)
    seen = torch.cat([batch.images for batch in batches.epoch(0)])
    assert len(batches) == 9
    assert len({tuple(row) for row in seen.tolist()}) == 450
    again, later = (torch.cat([batch.labels for batch in batches.epoch(number)]) for number in (0, 1))
    assert torch.equal(torch.cat([batch.labels for batch in batches.epoch(0)]), again)
    assert not torch.equal(again, later)


def test_streams_follow_one_another_in_a_batch():
    train, _ = load_table("toy")
    both = next(iter(TableBatches(train, (Stream(1, 1), Stream(2, 2)), 32).epoch(0)))
    apart = [next(iter(TableBatches(train, (Stream(seed, seed),), 32).epoch(0))) for seed in (1, 2)]
    assert torch.equal(both.images, torch.cat([batch.images for batch in apart]))
    assert torch.equal(both.labels, torch.cat([batch.labels for batch in apart]))


def test_a_batch_larger_than_the_table_is_refused(context):
    with pytest.raises(ValueError, match="a batch of 1000 rows needs more than the 480"):
        record_of(context, replace(TOY, batch=1000))
