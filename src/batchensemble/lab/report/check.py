"""A claim of the paper, checked against what was measured: it holds, does not hold here, or remains undecided."""

import math
from dataclasses import dataclass
from enum import Enum

SURE = 0.95
"""Confidence with which a true value lies within the noise that we allow for."""


class Verdict(Enum):
    """The outcome of checking a claim."""

    HOLDS = "holds"
    FAILS = "does not hold here"
    ONE_YES = "with one seed: yes"
    ONE_NO = "with one seed: no"
    UNDECIDED = "within the noise"
    OPEN = "not measured"

    @classmethod
    def of(cls, holds: bool, *, within_noise: bool = False, one_seed: bool = False) -> "Verdict":
        """The verdict on a measured claim: noise decides nothing, and one seed cannot tell its own noise."""
        if within_noise:
            return cls.UNDECIDED
        if one_seed:
            return cls.ONE_YES if holds else cls.ONE_NO
        return cls.HOLDS if holds else cls.FAILS


def student(freedom: float) -> float:
    """How many standard errors a true value lies from the mean at most, with confidence `SURE`.

    Examples:
        >>> [round(student(freedom), 2) for freedom in (2, 4, math.inf)]
        [4.3, 2.78, 1.96]
    """
    from scipy.special import ndtri, stdtrit

    share = (1 + SURE) / 2
    return float(ndtri(share) if math.isinf(freedom) else stdtrit(freedom, share))


@dataclass(frozen=True)
class Span:
    """The range of numbers for which a claim holds, ends included.

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
        """The verdict on a number and its standard error, which is `None` if unknown.

        A number decides if the claim holds, or fails, for every value within its noise: as many standard errors to
        either side as Student's t gives at `SURE` with these degrees of freedom, 2 with many seeds and 4.3 with two on
        each side.
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
        """Format the check as an item of a Markdown list."""
        return f"- **{self.verdict.value}**: {self.claim} {self.words}"
