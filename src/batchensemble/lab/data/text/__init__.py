"""Parallel text: readers, a vocabulary for both languages, prepared arrays, batches by tokens."""

from .buckets import WIDTHS, Buckets
from .lines import GivenText, Text, TextFile, text_file
from .parallel import ParallelText, Sentences, Tally
from .prepared import Prepared, Tokens, load_prepared, prepare
from .toy import ToyLanguage
from .vocabulary import END, PAD, UNKNOWN, Vocabulary

__all__ = [
    "END",
    "PAD",
    "UNKNOWN",
    "WIDTHS",
    "Buckets",
    "GivenText",
    "ParallelText",
    "Prepared",
    "Sentences",
    "Tally",
    "Text",
    "TextFile",
    "Tokens",
    "ToyLanguage",
    "Vocabulary",
    "load_prepared",
    "prepare",
    "text_file",
]
