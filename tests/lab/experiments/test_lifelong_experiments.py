"""The lifelong experiments are values that their study understands; that they run is tested with all others."""

import dataclasses

import pytest

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.methods.lifelong import METHODS
from batchensemble.lab.records import SCALES
from batchensemble.lab.studies.lifelong import Settings

LIFELONG = [experiment for name, experiment in EXPERIMENTS.items() if name.startswith("lifelong-")]


def test_what_is_recorded_is_shared_between_experiments() -> None:
    plain, options = EXPERIMENTS["lifelong-cifar100"], EXPERIMENTS["lifelong-options"]
    shared = {case.run for case in plain.cases("smoke")} & {case.run for case in options.cases("smoke")}
    assert len(shared) == 1


@pytest.mark.parametrize("scale", SCALES)
def test_settings_are_those_of_the_study(scale) -> None:
    for experiment in (experiment for experiment in LIFELONG if scale in experiment.scales):
        for case in experiment.cases(scale):
            settings = Settings.of(case.run.settings)
            assert settings.settings() == {**case.run.settings}
            assert dataclasses.is_dataclass(settings.method)


def test_every_method_is_used_at_the_papers_scale() -> None:
    used = {case.run.settings["method"]["name"] for e in LIFELONG for case in e.cases("paper")}
    assert used == set(METHODS)
