"""The lifelong experiments run at smoke scale, and everything they show can be drawn from their records."""

import dataclasses
from pathlib import Path

import pytest

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.methods.lifelong import METHODS
from batchensemble.lab.records import SCALES
from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.store import Store
from batchensemble.lab.studies.lifelong import Settings
from batchensemble.lab.studies.perform import perform
from batchensemble.lab.studies.study import Context

LIFELONG = [experiment for name, experiment in EXPERIMENTS.items() if name.startswith("lifelong-")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.mark.parametrize("experiment", LIFELONG, ids=lambda experiment: experiment.id)
def test_it_runs_and_is_drawn(experiment, store: Store, work: Path) -> None:
    for case in experiment.cases("smoke"):
        perform(experiment.study, case.run, store, Context(work=work, device="cpu"))
    evidence = experiment.evidence(store.all(), "smoke")
    assert not evidence.missing
    for view in experiment.show:
        shown = view(evidence)
        if isinstance(shown, Figure):
            shown.save(work)
        elif isinstance(shown, Check):
            assert shown.verdict is not Verdict.OPEN
        else:
            assert "missing" not in shown.markdown()


def test_what_is_recorded_is_shared_between_experiments(store: Store) -> None:
    plain, options = EXPERIMENTS["lifelong-cifar100"], EXPERIMENTS["lifelong-options"]
    shared = {case.run for case in plain.cases("smoke")} & {case.run for case in options.cases("smoke")}
    assert len(shared) == 1


@pytest.mark.parametrize("scale", SCALES)
def test_settings_are_those_of_the_study(scale) -> None:
    for experiment in LIFELONG:
        for case in experiment.cases(scale):
            settings = Settings.of(case.run.settings)
            assert settings.settings() == {**case.run.settings}
            assert dataclasses.is_dataclass(settings.method)


def test_every_method_is_used_at_the_papers_scale() -> None:
    used = {case.run.settings["method"]["name"] for e in LIFELONG for case in e.cases("paper")}
    assert used == set(METHODS)
