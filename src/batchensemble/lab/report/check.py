"""A claim of the paper, held against what was measured: it holds, it does not hold here, or nobody can tell."""

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold here"
    UNDECIDED = "within the noise"
    OPEN = "not measured"

    @classmethod
    def of(cls, holds: bool, *, within_noise: bool = False) -> "Verdict":
        """The verdict on a claim that was measured; a difference within the noise decides nothing, either way."""
        if within_noise:
            return cls.UNDECIDED
        return cls.HOLDS if holds else cls.FAILS


@dataclass(frozen=True)
class Check:
    """A claim, its verdict, and the numbers behind it in words."""

    claim: str
    verdict: Verdict
    words: str

    def markdown(self) -> str:
        """As an item of a list."""
        return f"- **{self.verdict.value}**: {self.claim} {self.words}"
