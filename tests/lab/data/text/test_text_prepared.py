"""Prepared arrays: the sentences that were given, whole or not there, mapped and not read."""

import resource

import numpy as np
import pytest

from batchensemble.lab.data.text import (
    GivenText,
    ParallelText,
    Tally,
    ToyLanguage,
    Vocabulary,
    load_prepared,
    prepare,
)
from batchensemble.lab.data.text import prepared as module

TEXT = ToyLanguage(0).text(100, seed=1)
PAIRS = list(TEXT)
VOCABULARY = Vocabulary.learn([side for pair in PAIRS for side in pair], "bpe", 400)


def test_sentences_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 7)  # several chunks, the last not full
    data = prepare(TEXT, VOCABULARY, tmp_path / "train", longest=64, keep_text=True)
    assert len(data) == 100
    assert data.tally == Tally(kept=100)
    for side, place in (("source", 0), ("target", 1)):
        tokens = getattr(data, side)
        rows = np.array([99, 0, 42])
        padded = tokens.padded(rows, 64)
        assert VOCABULARY.decode(padded.tolist()) == [PAIRS[row][place] for row in rows]
        assert ((padded != 0).sum(1) == tokens.lengths[rows]).all()
        assert data.text(side) == [pair[place] for pair in PAIRS]
        assert isinstance(tokens.numbers, np.memmap)


def test_long_sentences_are_left_out_with_their_partners(tmp_path):
    lengths = [max(map(len, VOCABULARY.encode(pair))) for pair in PAIRS]
    longest = sorted(lengths)[49]
    data = prepare(TEXT, VOCABULARY, tmp_path / "train", longest, keep_text=True)
    kept = [pair for pair, length in zip(PAIRS, lengths, strict=True) if length <= longest]
    assert list(zip(data.text("source"), data.text("target"), strict=True)) == kept
    assert data.tally == Tally(kept=len(kept), too_long=100 - len(kept))
    assert data.lengths.max() == longest


def test_what_is_prepared_is_not_prepared_again(tmp_path):
    prepare(TEXT, VOCABULARY, tmp_path / "train", longest=64)
    other = ToyLanguage(1).text(5, seed=1)
    assert len(prepare(other, VOCABULARY, tmp_path / "train", longest=64)) == 100
    assert len(load_prepared(tmp_path / "train")) == 100


@pytest.mark.parametrize("target", [("a", "b"), ("", " ", "")])
def test_an_error_leaves_nothing_behind(tmp_path, target):
    text = ParallelText([(GivenText("source", ("one", "two", "three")), GivenText("target", target))])
    with pytest.raises(ValueError, match=r"pairs would shift|no sentence pair is left"):
        prepare(text, VOCABULARY, tmp_path / "train", longest=64)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fills_up_is_said_and_leaves_nothing(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, limits[1]))
    try:
        with pytest.raises(OSError, match=r"train cannot be prepared, and nothing of it is left"):
            prepare(TEXT, VOCABULARY, tmp_path / "train", longest=64)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())
