"""Two languages, line by line: usable pairs, and a count of the others, without ever shifting one side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from batchensemble.lab.data.text.lines import Text

Pair = tuple[str, str]


@dataclass
class Tally:
    """What became of the lines; every pair is counted once.

    Attributes:
        kept: pairs that are used.
        empty: pairs with a side without words.
        invalid: pairs with a side that is not UTF-8.
        too_long: pairs with a side of more tokens than the model takes.

    Examples:
        >>> print(Tally(kept=29_000, too_long=3))
        29,000 pairs; left out: 3 too long
    """

    kept: int = 0
    empty: int = 0
    invalid: int = 0
    too_long: int = 0

    def __str__(self) -> str:
        """Describe the tally in words."""
        reasons = {"without words": self.empty, "not UTF-8": self.invalid, "too long": self.too_long}
        out = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return f"{self.kept:,} pairs; left out: {out or 'none'}"


@dataclass
class ParallelText:
    """Pairs of lines from two texts of equal length, or from several such pairs of texts one after another.

    Args:
        sides: source and target of every part.
        tally: counts what has been read so far.

    Examples:
        >>> from batchensemble.lab.data.text import GivenText
        >>> english = GivenText("english", ("A cat.", "", "A dog."))
        >>> german = GivenText("german", ("Eine Katze.", "Ein Fisch.", "Ein Hund."))
        >>> text = ParallelText([(english, german)])
        >>> list(text), str(text.tally)
        ([('A cat.', 'Eine Katze.'), ('A dog.', 'Ein Hund.')], '2 pairs; left out: 1 without words')
    """

    sides: Sequence[tuple[Text, Text]]
    tally: Tally = field(default_factory=Tally)

    def __iter__(self) -> Iterator[Pair]:
        """Read everything again.

        Raises:
            ValueError: two sides have different numbers of lines.
        """
        self.tally = Tally()
        for source, target in self.sides:
            for pair in _lines(source, target):
                usable = self._judged(*pair)
                if usable is not None:
                    yield usable

    @property
    def stamp(self) -> list[str]:
        """Distinguish it from other parallel texts without reading it."""
        return [side.stamp for part in self.sides for side in part]

    def _judged(self, source: bytes, target: bytes) -> Pair | None:
        """The pair as text, or `None` if it is unusable; counted either way."""
        try:
            pair = _text(source), _text(target)
        except UnicodeDecodeError:
            self.tally.invalid += 1
            return None
        if not all(pair):
            self.tally.empty += 1
            return None
        self.tally.kept += 1
        return pair


@dataclass(frozen=True, eq=False)
class Sentences:
    """Both sides of every pair, one after the other; can be iterated repeatedly."""

    text: ParallelText

    def __iter__(self) -> Iterator[str]:
        """Read everything again."""
        return (sentence for pair in self.text for sentence in pair)


def _lines(source: Text, target: Text) -> Iterator[tuple[bytes, bytes]]:
    left, right = source.lines(), target.lines()
    for number, (one, other) in enumerate(zip_longest(left, right)):
        if one is None or other is None:
            shorter, longer, rest = (source, target, right) if one is None else (target, source, left)
            more = number + 1 + sum(1 for _ in rest)
            raise ValueError(f"{shorter.name} has {number:,} lines and {longer.name} has {more:,}: pairs would shift")
        yield one, other


def _text(line: bytes) -> str:
    return line.decode().removeprefix("\ufeff").strip()
