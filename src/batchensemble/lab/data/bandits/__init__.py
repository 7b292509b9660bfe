"""Contextual bandit problems: games from real files, and synthetic ones that are always there."""

from .game import Game, Problem
from .sources import PROBLEMS, load_problem

__all__ = ["PROBLEMS", "Game", "Problem", "load_problem"]
