"""Plays many trials of a bandit problem at once, and measures what the choices cost."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from batchensemble import metrics
from batchensemble.lab.data.bandits import Game, load_problem
from batchensemble.lab.methods.bandits import Method, Setting, Streams, Uniform, method_from, settings_of
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.records import Record, Run
from batchensemble.lab.studies.memory import keep_freed_memory
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.devices import start_fabric
from batchensemble.lab.training.progress import Progress
from batchensemble.seeds import seed_of

POINTS = 40  # per curve in a record
TICK = 50  # steps per movement of the progress bar


@dataclass(frozen=True)
class Settings:
    """What is played, by whom, how often and how long.

    Args:
        problem: name of the problem.
        method: the algorithm.
        steps: contexts in a game, or as many as the data has.
        trials: number of games, played in parallel.
        delta: the wheel's delta; `None` for every other problem.
    """

    problem: str = "wheel"
    method: Method = field(default_factory=Uniform)
    steps: int = 2000
    trials: int = 30
    delta: float | None = None

    def __post_init__(self) -> None:
        if self.steps < 1 or self.trials < 2:
            raise ValueError(f"expected a step and two trials at least, got {self.steps} and {self.trials}")
        if (self.delta is not None) != (self.problem == "wheel"):
            raise ValueError(f"the wheel has a delta and nothing else has; got {self.delta} for {self.problem}")

    def settings(self) -> dict[str, Any]:
        """The settings as plain JSON."""
        return {**vars(self), "method": settings_of(self.method)}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build the settings from JSON."""
        return cls(**{**settings, "method": method_from(settings["method"])})


def run(run: Run, context: Context) -> Record:
    """Play all trials with the method, and again with random choices on the same data."""
    began = time.time()
    settings = Settings.of(run.settings)
    device = start_fabric(context.device).device
    if device.type == "cpu":
        keep_freed_memory()
    games = draw_games(settings, run.seed, context)
    obtained = play(settings.method, games, run.seed, device, context.progress, settings.problem)
    by_chance = play(Uniform(), games, run.seed, device)
    found = measure(games, obtained, by_chance)
    return Record(run, found, Provenance.now(hardware(device), since=began))


def draw_games(settings: Settings, seed: int, context: Context) -> list[Game]:
    """Draw the trials' data; trial i of a seed is the same game in every run, whatever the number of trials."""
    problem = load_problem(settings.problem, context.data, settings.delta or 0.95)
    return [problem.play(settings.steps, np.random.default_rng([seed, i])) for i in range(settings.trials)]


def play(
    method: Method,
    games: Sequence[Game],
    seed: int,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
    title: str = "",
) -> Tensor:
    """The rewards a method obtains, `(trials, steps)`; all games advance together, step by step.

    Args:
        method: the algorithm.
        games: one per trial, all of the same length.
        seed: together with the trial's number, seeds the algorithm's own random choices.
        device: where to compute.
        progress: is told about the steps.
        title: label of the progress bar.

    Examples:
        >>> from batchensemble.lab.data.bandits import load_problem
        >>> games = [load_problem("linear").play(5, np.random.default_rng(i)) for i in range(3)]
        >>> play(Uniform(), games, seed=0).shape
        torch.Size([3, 5])
    """
    contexts = torch.from_numpy(np.stack([game.contexts for game in games])).to(device)
    rewards = torch.from_numpy(np.stack([game.rewards for game in games])).to(device)
    steps, width, arms = contexts.shape[1], contexts.shape[2], rewards.shape[2]
    streams = Streams([seed_of(seed, trial, 1) for trial in range(len(games))], device)  # not the seeds of the data
    algorithm = method.start(Setting(width, arms, steps, streams))
    obtained = torch.zeros(len(games), steps, device=device)
    progress = progress or Progress()
    progress.start(title, -(-steps // TICK))
    for step in range(steps):
        chosen = algorithm.act(contexts[:, step])
        obtained[:, step] = rewards[:, step].gather(1, chosen[:, None])[:, 0]
        algorithm.update(contexts[:, step], chosen, obtained[:, step])
        if (step + 1) % TICK == 0 or step + 1 == steps:
            progress.advance()
    progress.end()
    return obtained.cpu()


def measure(games: Sequence[Game], obtained: Tensor, by_chance: Tensor) -> dict[str, Any]:
    """Compute the reward, regret and relative regret (to random choices) of each trial, and curves of the latter.

    A `curve` is the regret so far, in percent of what random choices end with; it ends at the trial's relative regret.

    Args:
        games: the trials' data.
        obtained: the method's rewards, `(trials, steps)`.
        by_chance: the rewards of random choices.
    """
    optimal = torch.from_numpy(np.stack([game.optimal for game in games]))
    regret = metrics.cumulative_regret(optimal, obtained)
    uniform = metrics.cumulative_regret(optimal, by_chance)[:, -1]
    at = torch.linspace(0, regret.shape[1] - 1, min(POINTS, regret.shape[1])).long()
    return {
        "steps": regret.shape[1],
        "relative_regret": _short(metrics.relative_regret(regret[:, -1], uniform)),
        "regret": _short(regret[:, -1]),
        "uniform_regret": _short(uniform),
        "total_reward": _short(obtained.double().sum(1)),
        "optimal_reward": _short(optimal.double().sum(1)),
        "curve_steps": (at + 1).tolist(),
        "curve": [_short(trial, 4) for trial in 100 * regret[:, at] / uniform[:, None]],
    }


def _short(values: Tensor, digits: int = 7) -> list[float]:
    """Round to `digits` significant digits, to keep records small."""
    return [float(f"{value:.{digits}g}") for value in values.tolist()]


BANDITS = Study("bandits", run)
