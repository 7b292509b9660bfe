"""The bandit table: ranks, means, errors, paired tests, claims, and what is missing."""

import numpy as np
import pytest
import torch
from fake_records import evidence, place
from scipy import stats

from batchensemble import metrics
from batchensemble.lab.records import Published
from batchensemble.lab.report import Place, Verdict
from batchensemble.lab.report.evidence import NotMeasured
from batchensemble.lab.report.views import (
    best_mean_value,
    lower_mean_value,
    paired_table,
    regret_table,
    rewards_table,
)
from batchensemble.lab.report.views.regret import Regrets

TRIALS = {
    ("Ours", "Wheel"): [10.0, 12.0, 14.0],
    ("Ours", "Jester"): [50.0, 52.0, 54.0],
    ("Theirs", "Wheel"): [20.0, 18.0, 22.0],
    ("Theirs", "Jester"): [40.0, 44.0, 45.0],
    ("Uniform", "Wheel"): [100.0] * 3,
    ("Uniform", "Jester"): [100.0] * 3,
}


def labels(method, problem):
    return {"problem": problem, "method": method}


@pytest.fixture
def found():
    places = [
        place({"relative_regret": trials, "total_reward": [3.0, 5.0, 7.0], "optimal_reward": [9.0] * 3}, labels(*pair))
        for pair, trials in TRIALS.items()
    ]
    published = [
        Published(labels("Ours", "Wheel"), "relative_regret", 61.41, 26.18),
        Published(labels("Ours", "Jester"), "relative_regret", 71.84, 6.47),
        Published({"method": "Ours"}, "mean_value", 33.95),
        Published(labels("Ours", "Wheel"), "total_reward", 4),
        Published({"problem": "Wheel"}, "optimal_reward", 8),
    ]
    return evidence(places, published)


def cells(table, method):
    line = next(line for line in table.lines if line.labels == (method,))
    return [cell.ours for cell in line.cells]


def test_the_table(found):
    table = regret_table()(found)
    assert table.headings == ("method", "mean rank", "mean value", "Wheel, regret", "Jester, regret")
    rank, value, wheel, jester = cells(table, "Ours")
    assert (rank.mean, rank.spread) == (1.5, None)
    assert cells(table, "Uniform")[0].mean == 3.0
    assert value.mean == pytest.approx(32.0)
    assert value.spread == pytest.approx(stats.sem([30.0, 32.0, 34.0]))
    assert (wheel.mean, wheel.spread, wheel.count) == (12.0, pytest.approx(stats.sem([10, 12, 14])), 3)
    assert jester.mean == 52.0
    text = table.markdown()
    assert "12.00 ± 1.15 (paper 61.41 ± 26.18)" in text
    assert "32.00 ± 1.15 (paper 33.95)" in text


def test_the_papers_means_stand_beside_means_over_the_papers_problems_only(found):
    other = evidence([place({"relative_regret": [1.0, 2.0]}, labels("Ours", "Roulette"))], found.published)
    assert "paper" not in regret_table()(other).lines[0].cells[1].paper_text(regret_table()(other).columns[1].quantity)
    assert regret_table()(other).lines[0].cells[1].paper == ()


def test_the_cut_leaves_uniform(found):
    assert [line.labels[0] for line in regret_table(at_most=1.4)(found).lines] == ["Uniform"]
    assert [line.labels[0] for line in regret_table(at_most=1.5)(found).lines] == ["Ours", "Theirs", "Uniform"]


def test_a_method_that_did_not_play_everywhere_has_no_mean(found):
    missing = evidence([*found.places, Place(labels("Late", "Jester"), 0), place(
        {"relative_regret": [1.0, 2.0, 3.0]}, labels("Late", "Wheel"))])  # fmt: skip
    rank, value, wheel, jester = cells(regret_table()(missing), "Late")
    assert (rank, value, jester) == (None, None, None)
    assert wheel.mean == 2.0
    assert cells(regret_table()(missing), "Ours")[0].mean == 1.5  # ranks are among those that did


def test_further_seeds_are_further_trials(found):
    more = evidence([*found.places, place({"relative_regret": [20.0, 20.0, 20.0]}, labels("Ours", "Wheel"), seed=1)])
    assert Regrets.of(more).trials["Ours", "Wheel"].tolist() == [10, 12, 14, 20, 20, 20]


def test_trials_are_compared_with_those_of_the_same_seed(found):
    further = [
        place({"relative_regret": [20.0, 20.0, 20.0]}, labels("Ours", "Wheel"), seed=1),
        place({"relative_regret": [90.0, 90.0, 90.0]}, labels("Theirs", "Wheel"), seed=2),
    ]
    more = evidence([*found.places, *further])
    assert cells(regret_table()(more), "Ours")[1].mean == pytest.approx(32.0)  # Jester was not played with seed 1
    assert cells(paired_table("Ours")(more), "Theirs") == cells(paired_table("Ours")(found), "Theirs")


def test_paired_differences(found):
    table = paired_table("Ours")(found)
    assert [line.labels[0] for line in table.lines] == ["Theirs", "Uniform"]
    difference, chance, wheel, wheel_chance, *_ = cells(table, "Theirs")
    assert wheel.mean == pytest.approx(8.0)
    assert wheel.spread == pytest.approx(stats.sem([10, 6, 8]))
    assert wheel_chance.mean == metrics.paired_test(
        torch.tensor(TRIALS["Theirs", "Wheel"]), torch.tensor(TRIALS["Ours", "Wheel"])
    )
    assert difference.mean == pytest.approx(np.mean([0.0, -1.0, -0.5]))
    assert 0 < chance.mean <= 1


def test_captions_count_the_trials(found):
    more = evidence([*found.places, place({"relative_regret": [11.0, 13.0]}, labels("Ours", "Wheel"), seed=1)])
    for view, counts in ((regret_table(), "over 3 to 5 trials"), (paired_table("Ours"), "on the same 3 trials")):
        assert "3 trials" in view(found).caption
        assert counts in view(more).caption


def test_claims(found):
    assert best_mean_value("Theirs", "It is best.")(found).verdict is Verdict.UNDECIDED
    lost = best_mean_value("Ours", "It is best.")(found)
    assert lost.verdict is Verdict.UNDECIDED
    assert "Ours 32.00 ± 1.15 against Theirs 31.50 ± 1.04" in lost.words
    assert lost.words.endswith("too few trials to tell from noise, p = 0.500 where 3 cannot give less than 0.250.")
    assert lower_mean_value("Ours", "Uniform", "Better than chance.")(found).verdict is Verdict.UNDECIDED
    assert lower_mean_value("Ours", "Nobody", "?")(found).verdict is Verdict.OPEN
    assert best_mean_value("Ours", "?")(evidence([])).verdict is Verdict.OPEN


def test_rewards_beside_the_example(found):
    table = rewards_table("Wheel", source="From somewhere.")(found)
    assert [line.labels[0] for line in table.lines] == ["Ours", "Theirs", "Uniform", "best choices"]
    ours = table.lines[0].cells[0]
    assert (ours.ours.mean, ours.ours.spread) == (5.0, 2.0)
    assert [number.value for number in ours.paper] == [4]
    assert [number.value for number in table.lines[-1].cells[0].paper] == [8]
    assert "From somewhere." in table.caption
    assert "5.00 ± 2.00 (example 4.00)" in table.markdown()
    assert "paper" not in table.markdown() + table.csv()


def test_nothing_was_played():
    for view in (regret_table(), paired_table("Ours"), rewards_table("Wheel")):
        with pytest.raises(NotMeasured):
            view(evidence([Place(labels("Ours", "Wheel"), 0)]))


@pytest.mark.parametrize(
    ("shift", "words", "verdict"),
    [
        (0.1, "within the noise of the trials, p = 0.", Verdict.UNDECIDED),
        (3.0, "beyond the noise of the trials, p < 0.001.", Verdict.HOLDS),
    ],
)
def test_noise_is_told_from_a_difference(shift, words, verdict):
    ours = np.random.default_rng(0).normal(50, 1, 12)
    pairs = {"Ours": ours, "Theirs": ours + shift + np.random.default_rng(1).normal(0, 1, 12)}
    played = [place({"relative_regret": list(values)}, labels(name, "Wheel")) for name, values in pairs.items()]
    check = lower_mean_value("Ours", "Theirs", "Better.")(evidence(played))
    assert words in check.words
    assert check.verdict is verdict
    assert best_mean_value("Ours", "Best.")(evidence(played)).verdict is verdict
