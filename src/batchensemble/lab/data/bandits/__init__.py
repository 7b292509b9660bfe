"""Contextual bandit problems: games from real data, and synthetic ones that need no files."""

from batchensemble.lab.data.bandits.game import Game, Problem
from batchensemble.lab.data.bandits.sources import PROBLEMS, load_problem

__all__ = ["PROBLEMS", "Game", "Problem", "load_problem"]
