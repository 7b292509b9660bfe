"""A toy language: small enough to be learned in seconds, but not by looking up words alone.

Its sentences consist of a subject, a verb and an object, in one clause or two. The translation puts the verb last and
adjectives after their nouns, and its articles agree with the noun. So words must be looked up and moved, and a noun
must be read before its article is written.
"""

import random
from dataclasses import dataclass

from batchensemble.lab.data.text.lines import GivenText
from batchensemble.lab.data.text.parallel import ParallelText

KINDS = {"noun": 16, "adjective": 8, "verb": 8}
Word = tuple[str, str]
"""A word and its translation."""


@dataclass(frozen=True)
class ToyLanguage:
    """Two invented languages and their dictionary.

    Args:
        seed: seeds the words.

    Examples:
        >>> language = ToyLanguage(seed=0)
        >>> next(iter(language.text(1, seed=7)))
        ('the buge nubu nime the lule.', 'to vute zuto ta tapo vuzi.')
    """

    seed: int = 0

    def text(self, count: int, seed: int) -> ParallelText:
        """Draw `count` sentence pairs."""
        words, chance = self._words(), random.Random(seed)
        pairs = [_sentence(words, chance) for _ in range(count)]
        source, target = zip(*pairs, strict=True)
        name = f"toy language {self.seed}, seed {seed}"
        return ParallelText([(GivenText(f"{name}, source", source), GivenText(f"{name}, target", target))])

    def _words(self) -> dict[str, list[Word]]:
        chance = random.Random(self.seed)
        size = sum(KINDS.values())
        ours, theirs = _invent(size, "bdgklmn", chance), _invent(size, "prstvz", chance)
        pairs = iter(zip(ours, theirs, strict=True))
        return {kind: [next(pairs) for _ in range(count)] for kind, count in KINDS.items()}


def _invent(count: int, consonants: str, chance: random.Random) -> list[str]:
    """Invent distinct words of two syllables."""
    syllables = [consonant + vowel for consonant in consonants for vowel in "aeiou"]
    return chance.sample([one + other for one in syllables for other in syllables], count)


def _sentence(words: dict[str, list[Word]], chance: random.Random) -> Word:
    first, second = _clause(words, chance), _clause(words, chance)
    if chance.random() < 0.5:
        return f"{first[0]}.", f"{first[1]}."
    return f"{first[0]} and {second[0]}.", f"{first[1]} ut {second[1]}."


def _clause(words: dict[str, list[Word]], chance: random.Random) -> Word:
    subject, obj, verb = _phrase(words, chance), _phrase(words, chance), chance.choice(words["verb"])
    return f"{subject[0]} {verb[0]} {obj[0]}", f"{subject[1]} {obj[1]} {verb[1]}"


def _phrase(words: dict[str, list[Word]], chance: random.Random) -> Word:
    noun = chance.choice(words["noun"])
    article = "ta" if words["noun"].index(noun) % 2 else "to"
    if chance.random() < 0.5:
        return f"the {noun[0]}", f"{article} {noun[1]}"
    adjective = chance.choice(words["adjective"])
    return f"the {adjective[0]} {noun[0]}", f"{article} {noun[1]} {adjective[1]}"
