"""Games are what the benchmark says they are."""

import numpy as np
import pytest
from scipy import stats

from batchensemble.lab.data.bandits import load_problem
from batchensemble.lab.data.bandits.problems import Classification, Financial, Jester, Linear, Mushroom, Wheel
from batchensemble.lab.data.rows import one_hot


@pytest.fixture
def chance():
    return np.random.default_rng(0)


def test_the_wheel_is_an_even_disc(chance):
    game = Wheel(0.95).play(20_000, chance)
    radius = np.linalg.norm(game.contexts, axis=1)
    angle = np.arctan2(game.contexts[:, 1], game.contexts[:, 0])
    assert stats.kstest(radius**2, "uniform").pvalue > 1e-3
    assert stats.kstest((angle + np.pi) / (2 * np.pi), "uniform").pvalue > 1e-3


def test_the_wheel_pays_fifty_on_the_rim_for_the_arm_of_the_quadrant(chance):
    game = Wheel(0.6).play(5000, chance)
    x, y = game.contexts.T
    rim = np.linalg.norm(game.contexts, axis=1) >= 0.6
    for arm, right, upper in ((0, True, True), (1, True, False), (2, False, True), (3, False, False)):
        here = rim & ((x > 0) == right) & ((y > 0) == upper)
        assert here.sum() > 500
        assert np.abs(game.rewards[here, arm] - 50).max() < 0.1
        assert np.array_equal(game.optimal[here], game.rewards[here, arm])
        others = np.delete(game.rewards[here], arm, 1)
        assert others.max() < 2
    assert np.array_equal(game.optimal[~rim], game.rewards[~rim, 4])
    assert np.allclose(game.rewards[~rim].mean(0), [1, 1, 1, 1, 1.2], atol=0.01)
    assert np.allclose(game.rewards[~rim].std(0), 0.05, atol=0.005)


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5])
def test_a_wheel_without_a_rim(delta):
    with pytest.raises(ValueError, match=f"got {delta}"):
        Wheel(delta)


def test_mushrooms(chance):
    looks = np.eye(10, dtype=np.float32)
    edible = np.arange(10) % 2 == 0
    game = Mushroom(looks, edible).play(20_000, chance)
    good = edible[game.contexts.argmax(1)]
    assert not game.rewards[:, 0].any()
    assert (game.rewards[good, 1] == 5).all()
    assert set(np.unique(game.rewards[~good, 1])) == {-35, 5}
    assert abs((game.rewards[~good, 1] == 5).mean() - 0.5) < 0.02
    assert np.array_equal(game.optimal, np.where(good, 5, 0))
    counts = np.bincount(game.contexts.argmax(1), minlength=10)
    assert stats.chisquare(counts).pvalue > 1e-3  # drawn with replacement, evenly


def test_classification(chance):
    features = np.stack([chance.normal(3, 2, 500), np.full(500, 7.0), np.arange(500)], 1)
    labels = chance.integers(4, size=500)
    game = Classification(features, labels, arms=5).play(200, chance)
    assert np.allclose(game.contexts.mean(0), 0, atol=1e-5)
    assert np.allclose(game.contexts.std(0), [1, 0, 1], atol=1e-5)  # what never changes is zero
    rows = np.argsort(np.argsort(game.contexts[:, 2]))  # the order of the third feature tells the rows apart
    assert len(set(rows)) == 200
    assert game.rewards.shape == (200, 5)
    assert np.array_equal(game.rewards.sum(1), np.ones(200))
    assert np.array_equal(game.optimal, np.ones(200))


def test_linear_rewards(chance):
    prices = chance.normal(size=(3000, 4)).astype(np.float32)
    game = Financial(prices).play(2500, chance)
    assert game.rewards.shape == (2500, 8)
    for arm in range(8):
        beta, residue, *_ = np.linalg.lstsq(game.contexts, game.rewards[:, arm], rcond=None)
        assert abs(np.linalg.norm(beta) - 1) < 0.02
        assert abs(np.sqrt(residue[0] / 2500) / (0.01 * (arm + 1)) - 1) < 0.1
    fitted = game.contexts @ np.linalg.lstsq(game.contexts, game.rewards, rcond=None)[0]
    assert np.allclose(game.optimal, fitted.max(1), atol=0.02)  # the expected reward, not the one drawn
    assert len(np.unique(game.contexts, axis=0)) == 2500


def test_jokes(chance):
    ratings = (np.arange(50)[:, None] * 100 + np.arange(40)[None]).astype(np.float32)
    first, second = (Jester(ratings).play(30, chance) for _ in range(2))
    for game in (first, second):
        users = game.contexts[:, 0] // 100
        assert len(set(users)) == 30
        rows = np.concatenate([game.contexts, game.rewards], 1)
        assert np.array_equal(np.sort(rows, 1), ratings[users.astype(int)])
        assert np.array_equal(game.optimal, game.rewards.max(1))
    assert not np.array_equal(first.rewards[0] % 100, second.rewards[0] % 100)  # other jokes in every game


def test_games_are_as_long_as_the_data_at_most(chance):
    assert len(Jester(np.zeros((50, 40), np.float32)).play(1000, chance)) == 50
    assert len(Mushroom(np.eye(3, dtype=np.float32), np.ones(3, bool)).play(1000, chance)) == 1000


def test_the_same_seed_gives_the_same_game():
    for problem in (Wheel(), Linear()):
        one, two, other = (problem.play(50, np.random.default_rng([0, i])) for i in (1, 1, 2))
        assert np.array_equal(one.contexts, two.contexts)
        assert np.array_equal(one.rewards, two.rewards)
        assert not np.array_equal(one.contexts, other.contexts)


def test_one_hot_columns_are_alphabetical():
    assert one_hot(np.array([["b", "q"], ["a", "q"], ["c", "p"]])).tolist() == [
        [0, 1, 0, 0, 1],
        [1, 0, 0, 0, 1],
        [0, 0, 1, 1, 0],
    ]


def test_there_is_no_such_problem():
    with pytest.raises(ValueError, match=r"must be one of mushroom, .*; got 'roulette'"):
        load_problem("roulette")
