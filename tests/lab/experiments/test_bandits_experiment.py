"""The bandit experiments ask for what the paper's table holds."""

import pytest

from batchensemble.lab.experiments.bandits import BANDITS, FURTHER_PROBLEMS, METHODS, PROBLEMS, VARIATIONS
from batchensemble.lab.studies.bandits import Settings


@pytest.mark.parametrize("experiment", [BANDITS, VARIATIONS, FURTHER_PROBLEMS], ids=lambda experiment: experiment.id)
@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_every_run_says_everything(experiment, scale):
    cases = experiment.cases(scale)
    assert len({case.run for case in cases}) == len(cases)
    for case in cases:
        settings = Settings.of(case.run.settings)
        assert settings.settings() == {**case.run.settings, "method": settings.settings()["method"]}
        training = case.run.settings["method"].get("training")
        assert training is None or set(training) >= {"reset_lr", "hidden", "clip"}


def test_the_table_is_whole():
    labels = {(case.labels["problem"], case.labels["method"]) for case in BANDITS.cases("paper")}
    assert labels == {(problem, method) for problem in PROBLEMS for method in METHODS}
    for case in BANDITS.cases("paper"):
        settings = Settings.of(case.run.settings)
        assert (settings.steps, settings.trials) == (2000, 30)
        assert not getattr(getattr(settings.method, "training", None), "reset_lr", False)


def test_the_papers_numbers_have_a_place():
    known = {(case.labels["problem"], case.labels["method"]) for case in BANDITS.cases("paper")}
    regrets = [number for number in BANDITS.published if number.metric == "relative_regret"]
    assert len(regrets) == 12 * 5
    assert {(number.labels["problem"], number.labels["method"]) for number in regrets} < known
    ours = {number.labels["problem"]: number for number in regrets if number.labels["method"] == "BatchEnsemble8"}
    assert (ours["Wheel"].value, ours["Wheel"].spread) == (61.41, 26.18)


def test_mean_values_are_the_means_of_their_rows():
    """The paper's own arithmetic, and our copying of it."""
    for method in METHODS:
        rows = [number.value for number in BANDITS.published if number.metric == "relative_regret"
                and number.labels["method"] == method]  # fmt: skip
        means = [number.value for number in BANDITS.published if number.metric == "mean_value"
                 and number.labels["method"] == method]  # fmt: skip
        if rows:
            assert sum(rows) / 5 == pytest.approx(means[0], abs=0.011)
