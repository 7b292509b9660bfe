"""The benchmark's problems: real and synthetic data turned into games, after Riquelme et al. (2018)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.data.bandits.game import Game
from batchensemble.lab.data.rows import Array


@dataclass(frozen=True, eq=False)
class Mushroom:
    """Eat it or not: nothing for leaving it, +5 for an edible one, +5 or -35 by chance for a poisonous one.

    Args:
        looks: features of the mushrooms, `(rows, features)`.
        edible: which of them are edible, `(rows,)`.
    """

    looks: Array
    edible: NDArray[np.bool_]

    def play(self, steps: int, chance: np.random.Generator) -> Game:
        """Draw mushrooms with replacement; arm 1 is to eat."""
        rows = chance.integers(len(self.looks), size=steps)
        edible = self.edible[rows]
        eaten = np.where(edible | (chance.random(steps) < 0.5), 5.0, -35.0)
        return Game(self.looks[rows], np.stack([np.zeros(steps), eaten], 1), np.where(edible, 5.0, 0.0))


@dataclass(frozen=True, eq=False)
class Classification:
    """Name the class: 1 for the right one, else nothing. Features are standardised over the rows of the game.

    Args:
        features: `(rows, features)`.
        labels: classes from zero, `(rows,)`.
        arms: number of classes.
    """

    features: Array
    labels: NDArray[np.int64]
    arms: int

    def play(self, steps: int, chance: np.random.Generator) -> Game:
        """Draw rows in random order, each at most once."""
        rows = chance.permutation(len(self.features))[:steps]
        features = self.features[rows].astype(np.float64)
        spread = features.std(0)
        contexts = (features - features.mean(0)) / np.where(spread == 0, 1, spread)
        return Game(contexts, np.eye(self.arms)[self.labels[rows]], np.ones(len(rows)))


@dataclass(frozen=True, eq=False)
class Financial:
    """Choose a portfolio: eight hidden linear functions of the day's prices, with noise that grows with the arm.

    Args:
        prices: price changes, `(days, stocks)`.
    """

    prices: Array

    def play(self, steps: int, chance: np.random.Generator) -> Game:
        """Draw days in random order, each at most once; the portfolios are new in every game."""
        return linear_game(self.prices[chance.permutation(len(self.prices))[:steps]], arms=8, chance=chance)


@dataclass(frozen=True)
class Linear:
    """Financial's rewards for Gaussian contexts: synthetic, without any files."""

    width: int = 10

    def play(self, steps: int, chance: np.random.Generator) -> Game:
        """Draw a new game."""
        return linear_game(chance.standard_normal((steps, self.width)), arms=8, chance=chance)


def linear_game(contexts: Array, arms: int, chance: np.random.Generator) -> Game:
    """Draw a game in which arm j gives `context . beta_j + N(0, 0.01 j)`, j from 1, for random beta of unit length."""
    beta = chance.uniform(-1, 1, (contexts.shape[1], arms))
    expected = contexts @ (beta / np.linalg.norm(beta, axis=0))
    noise = chance.normal(0, 0.01 * np.arange(1, arms + 1), expected.shape)
    return Game(contexts, expected + noise, expected.max(1))


@dataclass(frozen=True, eq=False)
class Jester:
    """Tell a joke: the reward is the user's rating, the context the user's ratings of the other jokes.

    Args:
        ratings: ratings in [-10, 10], `(users, jokes)`.
        arms: number of jokes to choose from.
    """

    ratings: Array
    arms: int = 8

    def play(self, steps: int, chance: np.random.Generator) -> Game:
        """Draw users in random order, each at most once; the jokes to choose from are new in every game."""
        users, jokes = (chance.permutation(size) for size in self.ratings.shape)
        ratings = self.ratings[users[:steps]][:, jokes]
        rewards = ratings[:, -self.arms :]
        return Game(ratings[:, : -self.arms], rewards, rewards.max(1))


@dataclass(frozen=True)
class Wheel:
    """A disc with a rim: inside, arm 4 gives 1.2 and the others 1; on the rim, the arm of the quadrant gives 50.

    Args:
        delta: radius at which the rim begins; the larger, the rarer the 50, and the more exploration to find them.
    """

    delta: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ValueError(f"the rim of the wheel begins at delta in (0, 1), got {self.delta}")

    def play(self, steps: int, chance: np.random.Generator) -> Game:
        """Draw points spread evenly over the disc; the best choice is worth the reward it gave."""
        angle, radius = chance.uniform(0, 2 * np.pi, steps), np.sqrt(chance.random(steps))
        points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
        rewards = chance.normal([1, 1, 1, 1, 1.2], 0.05, (steps, 5))
        quadrant = 2 * (points[:, 0] <= 0) + (points[:, 1] <= 0)  # ++ 0, +- 1, -+ 2, -- 3
        best = np.where(radius >= self.delta, quadrant, 4)
        rim = np.flatnonzero(best < 4)
        rewards[rim, best[rim]] = chance.normal(50, 0.01, len(rim))
        return Game(points, rewards, rewards[np.arange(steps), best])
