"""Experiments are values: complete, consistent, and shared run by run."""

from dataclasses import replace

import pytest

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.experiments.classifiers import (
    BATCH,
    LARGE,
    MEAN,
    NAIVE,
    RECIPES,
    REPEATED_OWN_NORMS,
    SINGLE,
    recipe,
)
from batchensemble.lab.experiments.digits import DIGITS, NOISE
from batchensemble.lab.experiments.experiment import Experiment, Grid, Row
from batchensemble.lab.experiments.jobs import jobs_of
from batchensemble.lab.methods.ensembles import BatchEnsemble, Naive
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import SCALES, Record, Run, plain
from batchensemble.lab.studies.classification import Settings
from batchensemble.lab.studies.study import Study

EVERY = [*EXPERIMENTS.values(), DIGITS, NOISE]


@pytest.mark.parametrize("experiment", EVERY, ids=lambda experiment: experiment.id)
def test_an_experiment_is_complete(experiment):
    assert experiment.item
    assert experiment.claim
    assert experiment.show
    for scale in experiment.scales:
        cases = experiment.cases(scale)
        places = [(tuple(case.labels.items()), case.run.seed) for case in cases]
        assert len(set(places)) == len(places), "two runs in one place"
        assert len({case.run for case in cases}) == len(cases), "one run in two places"


@pytest.mark.parametrize("scale", SCALES)
def test_settings_survive_as_json(scale):
    for experiment in EVERY:
        if experiment.study.name == "classification" and scale in experiment.scales:
            for case in experiment.cases(scale):
                assert plain(Settings.of(case.run.settings)) == case.run.settings


def test_runs_are_shared():
    accuracy, calibration = (
        {case.run for case in EXPERIMENTS[name].cases("paper")} for name in ("cifar-accuracy", "cifar-calibration")
    )
    assert calibration < accuracy
    diversity, partial = (
        {case.run for case in EXPERIMENTS[f"cifar-{n}"].cases("paper")} for n in ("diversity", "partial")
    )
    assert diversity < partial


def test_what_has_an_accuracy_has_its_calibration_beside_it():
    """But for two variants of the paper's recipe, whose question is whether the accuracy is the same."""
    accuracy, calibration = (
        {case.labels["method"] for case in EXPERIMENTS[name].cases("short")}
        for name in ("cifar-accuracy", "cifar-calibration")
    )
    assert accuracy - calibration == {MEAN, LARGE}


def test_the_recommended_recipe_stands_beside_the_papers_wherever_members_are_judged():
    for name in ("accuracy", "calibration", "corruption", "diversity", "partial", "unseen"):
        methods = {case.labels["method"] for case in EXPERIMENTS[f"cifar-{name}"].cases("short")}
        assert {BATCH, REPEATED_OWN_NORMS} <= methods, name


def test_the_demo_trains_every_network_once():
    """What it shows noise are the networks that it shows digits."""
    trained, shown_noise = ([case.run.settings["recipe"] for case in one.cases("smoke")] for one in (DIGITS, NOISE))
    assert trained == shown_noise


def test_a_run_of_two_experiments_is_one_job_in_the_words_of_the_first():
    accuracy, calibration = EXPERIMENTS["cifar-accuracy"], EXPERIMENTS["cifar-calibration"]
    jobs = jobs_of([accuracy, calibration], "paper")
    assert [job.run for job in jobs] == [case.run for case in accuracy.cases("paper")]
    assert jobs[0].words == "Single, CIFAR-10, seed 0"


def test_the_papers_recipes():
    single, batch, naive = (recipe(name, "paper", "CIFAR-100") for name in (SINGLE, BATCH, NAIVE))
    assert (single.depth, single.width, single.epochs, single.batch, single.lr) == (32, 4, 250, 128, 0.1)
    assert (single.schedule, single.weight_decay, single.data) == ("paper", 1e-4, "cifar100")
    assert (batch.epochs, batch.method) == (375, BatchEnsemble(4))
    assert (naive.epochs, naive.method) == (250, Naive(4))


@pytest.mark.parametrize("name", RECIPES)
def test_short_is_the_papers_but_for_a_fifth_of_the_epochs(name):
    short, full = recipe(name, "short", "CIFAR-10"), recipe(name, "paper", "CIFAR-10")
    assert replace(short, epochs=full.epochs) == full
    assert full.epochs == 5 * short.epochs


def test_published_numbers_stand_beside_runs_of_the_paper_scale():
    for experiment in EXPERIMENTS.values():
        cases = experiment.cases("paper") if "paper" in experiment.scales else []
        labels = [case.labels.items() for case in cases]
        for number in experiment.published:
            assert any(number.labels.items() <= there for there in labels), number


@pytest.fixture
def counting():
    study = Study("counting", lambda run, context: Record(run, {}, Provenance.now()))
    rows = (Row({"method": "up"}, {"to": 3}), Row({"method": "down"}, {"to": -3}, seeds=(0, 1)))
    return Experiment("counting", "Table", "It counts.", study, {"smoke": Grid(rows)})


def test_seeds_of_rows_grids_and_users(counting):
    assert [case.run.seed for case in counting.cases("smoke")] == [0, 0, 1]
    assert [case.run.seed for case in counting.cases("smoke", seeds=[7])] == [7, 7]
    with pytest.raises(ValueError, match="counting has the scales smoke; got 'paper'"):
        counting.cases("paper")
    with pytest.raises(ValueError, match="has the scales smoke, small, paper; got 'short'"):
        EXPERIMENTS["bandits"].cases("short")


def test_evidence_has_places_for_what_is_missing_and_for_further_seeds(counting):
    there = [Run("counting", {"to": 3}, "smoke", 0), Run("counting", {"to": 3}, "smoke", 5)]
    elsewhere = Run("counting", {"to": 4}, "smoke", 0)
    records = [Record(run, {}, Provenance.now()) for run in (*there, elsewhere)]
    evidence = counting.evidence(records, "smoke")
    assert [(place.labels["method"], place.seed) for place in evidence.places] == [
        ("up", 0), ("down", 0), ("down", 1), ("up", 5),
    ]  # fmt: skip
    assert len(evidence.missing) == 2
    assert [result.record.run for result in evidence.results] == there
