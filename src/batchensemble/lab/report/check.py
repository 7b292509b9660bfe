"""A claim of the paper, held against what was measured: it holds, it does not hold here, or nobody can tell."""

import math
from dataclasses import dataclass
from enum import Enum

SURE = 0.95
"""The chance with which a true value lies within the noise that is allowed for."""


class Verdict(Enum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold here"
    ONE_YES = "with one seed: yes"
    ONE_NO = "with one seed: no"
    UNDECIDED = "within the noise"
    OPEN = "not measured"

    @classmethod
    def of(cls, holds: bool, *, within_noise: bool = False, one_seed: bool = False) -> "Verdict":
        """The verdict on a claim that was measured: noise decides nothing, and one seed does not know its own."""
        if within_noise:
            return cls.UNDECIDED
        if one_seed:
            return cls.ONE_YES if holds else cls.ONE_NO
        return cls.HOLDS if holds else cls.FAILS


def student(freedom: float) -> float:
    """How many standard errors from a mean its true value lies at most, with the chance `SURE`.

    Examples:
        >>> [round(student(freedom), 2) for freedom in (2, 4, math.inf)]
        [4.3, 2.78, 1.96]
    """
    from scipy.special import ndtri, stdtrit

    share = (1 + SURE) / 2
    return float(ndtri(share) if math.isinf(freedom) else stdtrit(freedom, share))


@dataclass(frozen=True)
class Span:
    """The numbers between which a claim holds, both included.

    Examples:
        >>> above_zero = Span(low=0.0)
        >>> above_zero.verdict(0.3, error=0.1), above_zero.verdict(0.1, error=0.1), above_zero.verdict(0.1, error=None)
        (<Verdict.HOLDS: 'holds'>, <Verdict.UNDECIDED: 'within the noise'>, <Verdict.ONE_YES: 'with one seed: yes'>)
    """

    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def verdict(
        self, number: float, error: float | None, freedom: float = math.inf, *, one_seed: bool = False
    ) -> Verdict:
        """The verdict on a number and its standard error, which is `None` where nothing is known of it.

        A number decides where the claim holds, or fails, for all that its noise allows: as many errors to either side
        as Student's t takes at `SURE` with these degrees of freedom, 2 with many seeds and 4.3 with two on each side.
        """
        reach = student(freedom) * error if error else 0.0
        least, most = number - reach, number + reach
        sure = (least in self and most in self) or most < self.low or least > self.high
        return Verdict.of(number in self, within_noise=not sure, one_seed=one_seed or error is None)


@dataclass(frozen=True)
class Check:
    """A claim, its verdict, and the numbers behind it in words."""

    claim: str
    verdict: Verdict
    words: str

    def markdown(self) -> str:
        """As an item of a list."""
        return f"- **{self.verdict.value}**: {self.claim} {self.words}"
