"""One vocabulary of sub-words for both languages, learned from the corpus."""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import normalize

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Kind = Literal["bpe", "wordpiece"]
PAD, END, UNKNOWN = 0, 1, 2
SPECIAL = ("<pad>", "</s>", "<unk>")
_BREAKS = re.compile(r"[\t\n\r]+")


class Vocabulary:
    """Converts text to numbers and back.

    Both kinds restore a text as it was, in Unicode's composed form. Byte pairs go down to bytes, so nothing is unknown;
    word-pieces mark the beginnings of words and know the characters of the corpus.

    Args:
        tokenizer: a tokenizer of the package `tokenizers`.

    Examples:
        >>> words = ["the cat sees the dog", "le chat voit le chien"] * 20
        >>> vocabulary = Vocabulary.learn(words, "bpe", 280)
        >>> (numbers,) = vocabulary.encode(["the chat"])
        >>> numbers[-1] == END, vocabulary.decode([numbers]), len(vocabulary)
        (True, ['the chat'], 280)
    """

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer
        tokenizer.encode_special_tokens = True  # "</s>" in a text is text

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    @property
    def digest(self) -> str:
        """Distinguish it from other vocabularies."""
        return hashlib.sha256(self._tokenizer.to_str().encode()).hexdigest()

    @classmethod
    def learn(cls, texts: Iterable[str], kind: Kind, size: int) -> "Vocabulary":
        """Learn the vocabulary of a corpus; a small corpus may not have as many sub-words as asked for.

        Args:
            texts: sentences of both languages; word-pieces read them twice.
            kind: "bpe" (byte-pair encoding) or "wordpiece".
            size: number of sub-words, including the three special ones.
        """
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}; got {kind!r}")
        return cls(_KINDS[kind](texts, size))

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Load a file written by `save`.

        Raises:
            ValueError: the file is damaged.
        """
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:  # the package raises no more specific one
            raise ValueError(f"{path} holds no vocabulary: {error}") from error

    def save(self, path: Path) -> None:
        """Save the vocabulary as one JSON file."""
        self._tokenizer.save(str(path))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of every text, ending with `END`."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [[*encoding.ids, END] for encoding in encodings]

    def decode(self, rows: Iterable[Sequence[int]]) -> list[str]:
        """Every row's text up to its first `END`, on one line: byte pairs include bytes that end lines."""
        texts = self._tokenizer.decode_batch([_words(row) for row in rows])
        return [_BREAKS.sub(" ", str(text)).strip() for text in texts]


def _words(row: Sequence[int]) -> list[int]:
    numbers = [int(number) for number in row if number != PAD]
    return numbers[: numbers.index(END)] if END in numbers else numbers


def _byte_pairs(texts: Iterable[str], size: int) -> "Tokenizer":
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _word_pieces(texts: Iterable[str], size: int) -> "Tokenizer":
    from tokenizers import models, trainers

    learner = _word_piece_tokenizer(models.WordPiece())
    # Ties between counts are broken by token number, so every character inside a word gets its number up front.
    first = [*SPECIAL, *(f"##{character}" for character in _characters(texts))]
    learner.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=size, special_tokens=first, show_progress=False)
    )
    pieces = learner.get_vocab(with_added_tokens=False)
    return _word_piece_tokenizer(models.WordPiece(pieces, unk_token=SPECIAL[UNKNOWN]))


def _word_piece_tokenizer(model: Any) -> "Tokenizer":
    from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    # A word begins with a mark for the space before it; punctuation is split off, so "##" is never text.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation("isolated")]
    )
    tokenizer.decoder = decoders.Sequence([decoders.Replace(Regex("^##"), ""), decoders.Metaspace(), decoders.Fuse()])
    return tokenizer


def _characters(texts: Iterable[str]) -> list[str]:
    found: set[str] = set()
    for text in texts:
        found.update(normalize("NFC", text))
    return sorted(found - {" "})


_KINDS: dict[Kind, Callable[[Iterable[str], int], "Tokenizer"]] = {"bpe": _byte_pairs, "wordpiece": _word_pieces}
