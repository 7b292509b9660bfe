"""Parallel text: readers, a vocabulary for both languages, prepared arrays, batches by tokens."""

from batchensemble.lab.data.text.buckets import WIDTHS, Buckets
from batchensemble.lab.data.text.lines import GivenText, Text, TextFile, text_file
from batchensemble.lab.data.text.parallel import ParallelText, Sentences, Tally
from batchensemble.lab.data.text.prepared import Prepared, Tokens, load_prepared, prepare
from batchensemble.lab.data.text.toy import ToyLanguage
from batchensemble.lab.data.text.vocabulary import END, PAD, UNKNOWN, Vocabulary

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
