"""A claim of the paper, held against what was measured: it holds, it does not hold here, or it is not measured."""

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold here"
    OPEN = "not measured"

    @classmethod
    def of(cls, holds: bool) -> "Verdict":
        """The verdict on a claim that was measured."""
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
