"""Games are counted right, and a run is the same every time."""

import json

import numpy as np
import pytest
import torch

from batchensemble.lab.data.bandits import Game
from batchensemble.lab.methods.bandits import BatchEnsemble, Linear, NetworkTraining, Uniform
from batchensemble.lab.records import Run
from batchensemble.lab.studies.bandits import BANDITS, Settings, draw_games, measure, play
from batchensemble.lab.studies.study import Context

QUICK = NetworkTraining(steps=2, batch=16, every=20)
SETTINGS = Settings("wheel", BatchEnsemble(2, training=QUICK), steps=60, trials=3, delta=0.8)


class Told:
    """A progress bar that remembers."""

    def __init__(self):
        self.said = []

    def start(self, name, total, done=0):
        self.said.append((name, total))

    def advance(self, note=""):
        self.said.append("step")

    def end(self):
        self.said.append("end")


def test_regret_is_what_the_best_choices_would_have_given_more():
    game = Game(np.zeros((4, 1)), np.zeros((4, 2)), np.array([5.0, 5.0, 0.0, 2.0]))
    obtained, by_chance = torch.tensor([[5.0, 0.0, 0.0, 1.0]] * 2), torch.tensor([[-5.0, 0.0, -3.0, 2.0]] * 2)
    found = measure([game, game], obtained, by_chance)
    assert found["regret"] == [6.0, 6.0]
    assert found["uniform_regret"] == [18.0, 18.0]
    assert found["relative_regret"] == pytest.approx([100 / 3] * 2)
    assert found["total_reward"] == [6.0, 6.0]
    assert found["optimal_reward"] == [12.0, 12.0]
    assert found["curve_steps"] == [1, 2, 3, 4]
    assert found["curve"][0] == pytest.approx([0, 500 / 18, 500 / 18, 600 / 18], rel=1e-3)


def test_rewards_are_those_of_the_arms_that_were_pulled():
    class Second:
        def start(self, setting):
            return self

        def act(self, contexts):
            return torch.ones(len(contexts), dtype=torch.int64)

        def update(self, contexts, arms, rewards):
            self.last = (contexts.clone(), rewards.clone())

    games = [Game(np.full((5, 2), i), np.arange(15.0).reshape(5, 3) + 100 * i, np.zeros(5)) for i in range(2)]
    method = Second()
    assert play(method, games, seed=0).tolist() == [[1, 4, 7, 10, 13], [101, 104, 107, 110, 113]]
    assert method.last[0].tolist() == [[0, 0], [1, 1]]
    assert method.last[1].tolist() == [13, 113]


def test_trial_i_is_the_same_game_in_every_run():
    few, many = (Settings("linear", Uniform(), steps=20, trials=count) for count in (2, 4))
    one, other = draw_games(few, 0, Context()), draw_games(many, 0, Context())
    for first, second in zip(one, other, strict=False):
        assert np.array_equal(first.rewards, second.rewards)
    assert not np.array_equal(one[0].rewards, draw_games(few, 1, Context())[0].rewards)


def test_a_run_and_its_record(tmp_path):
    run = Run("bandits", SETTINGS, "smoke", seed=3)
    told = Told()
    record = BANDITS.run(run, Context(work=tmp_path, device="cpu", progress=told))
    assert record.run == run
    assert record.metrics == BANDITS.run(run, Context(work=tmp_path, device="cpu")).metrics
    assert len(record.metrics["relative_regret"]) == 3
    assert len(json.dumps(dict(record.metrics))) < 5000
    assert told.said == [("wheel", 2), "step", "step", "end"]
    chance = Run("bandits", Settings("wheel", Uniform(), 60, 3, 0.8), "smoke", seed=3)
    uniform = BANDITS.run(chance, Context(work=tmp_path, device="cpu")).metrics
    assert uniform["relative_regret"] == [100.0] * 3
    assert uniform["uniform_regret"] == record.metrics["uniform_regret"]  # the same chance in every record


def test_settings_and_back():
    assert Settings.of(json.loads(json.dumps(SETTINGS.settings()))) == SETTINGS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trials": 1}, "two trials at least, got 60 and 1"),
        ({"steps": 0}, "expected a step"),
        ({"delta": None}, "got None for wheel"),
        ({"problem": "linear"}, "got 0.8 for linear"),
    ],
)
def test_settings_that_make_no_sense(change, message):
    with pytest.raises(ValueError, match=message):
        Settings.of({**SETTINGS.settings(), **change})


def test_a_problem_that_is_not_there(tmp_path):
    run = Run("bandits", Settings("jester", Linear(), 50, 2), "small")
    with pytest.raises(FileNotFoundError, match="jester"):
        BANDITS.run(run, Context(data=tmp_path, device="cpu"))
