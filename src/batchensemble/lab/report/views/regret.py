"""Regrets of bandits, trial by trial: what their tables and claims rest on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from batchensemble import metrics
from batchensemble.lab.report.evidence import Evidence, NotMeasured, Summary
from batchensemble.lab.report.quantity import Quantity

METRIC = "relative_regret"
VALUE = Quantity("mean_value", "mean value", digits=2, better="lower")
P_VALUE = Quantity("p", "p", digits=3, least=0.001)


@dataclass(frozen=True)
class Regrets:
    """Relative regrets of every trial, by method and problem, `(trials,)` for every seed; only what was measured.

    Trials of one seed are the same games for every method. Where trials are compared or averaged, only the seeds that
    all sides have in common count.
    """

    methods: tuple[str, ...]
    problems: tuple[str, ...]
    games: Mapping[tuple[str, str], Mapping[int, Tensor]]

    @classmethod
    def of(cls, evidence: Evidence) -> "Regrets":
        """Collect the regrets in the records."""
        methods, problems = evidence.labels("method"), evidence.labels("problem")
        found = {}
        for pair in product(methods, problems):
            results = evidence.with_metric(METRIC, method=pair[0], problem=pair[1])
            games = {result.record.run.seed: torch.tensor(values, dtype=torch.float64) for result, values in results}
            if games:
                found[pair] = games
        if not found:
            raise NotMeasured("no game has been played")
        played = {method for method, _ in found}
        return cls(tuple(method for method in methods if method in played), problems, found)

    @property
    def trials(self) -> dict[tuple[str, str], Tensor]:
        """All trials of each method on each problem; further seeds of a run are further trials."""
        return {pair: torch.cat(list(games.values())) for pair, games in self.games.items()}

    @property
    def complete(self) -> tuple[str, ...]:
        """Methods that played every problem; the others have neither mean value nor rank."""
        return tuple(m for m in self.methods if self.seeds([m], self.problems))

    def seeds(self, methods: Sequence[str], problems: Sequence[str]) -> list[int]:
        """The seeds with which all of the methods played all of the problems."""
        return sorted(set.intersection(*(set(self.games.get(pair, ())) for pair in product(methods, problems))))

    def value(self, method: str, problems: Sequence[str] = (), beside: Sequence[str] = ()) -> Tensor:
        """A method's mean over problems (all by default), trial by trial, in games that `beside` played too."""
        problems = problems or self.problems
        seeds = self.seeds([method, *beside], problems)
        return torch.stack([torch.cat([self.games[method, p][seed] for seed in seeds]) for p in problems]).mean(0)

    def pair(self, method: str, other: str, problems: Sequence[str] = ()) -> tuple[Tensor, Tensor] | None:
        """The values of two methods in the games that both played; `None` if there are none."""
        if not self.seeds([method, other], problems or self.problems):
            return None
        return self.value(method, problems, [other]), self.value(other, problems, [method])

    def ranks(self) -> dict[str, float]:
        """The mean ranks of the complete methods among themselves."""
        if not self.complete:
            return {}
        rows = [torch.stack([self.trials[m, p].mean() for p in self.problems]) for m in self.complete]
        return dict(zip(self.complete, metrics.mean_rank(torch.stack(rows)).tolist(), strict=True))


def over_trials(trials: Tensor) -> Summary:
    """Mean and standard error over trials.

    Examples:
        >>> over_trials(torch.tensor([1.0, 2.0, 3.0]))
        Summary(mean=2.0, spread=0.5773502691896258, count=3)
    """
    return Summary(trials.mean().item(), metrics.standard_error(trials).item(), len(trials))


def in_words(counts: Iterable[int]) -> str:
    """How many trials numbers rest on.

    Examples:
        >>> in_words([30, 30]), in_words([5, 30]), in_words([])
        ('30 trials', '5 to 30 trials', '0 trials')
    """
    several = sorted(set(counts)) or [0]
    return f"{' to '.join(map(str, dict.fromkeys((several[0], several[-1]))))} trials"


def p_value(first: Tensor, second: Tensor) -> float:
    """The p-value of the difference between two methods on the same trials, the same in every report."""
    return metrics.paired_test(first, second, generator=torch.Generator().manual_seed(0))
