"""Contextual bandit problems: games from real data, and synthetic ones that need no files."""

from .game import Game, Problem
from .sources import PROBLEMS, load_problem

__all__ = ["PROBLEMS", "Game", "Problem", "load_problem"]
