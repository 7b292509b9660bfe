"""Batches by tokens: every sentence in its turn, in shapes that never change."""

import numpy as np
import pytest

from batchensemble.lab.data.text import Buckets

LENGTHS = np.random.default_rng(0).integers(2, 120, 5005)


def buckets(**changes):
    return Buckets(**{"lengths": LENGTHS, "tokens": 2048} | changes)


def test_a_pass_takes_every_sentence_once_but_for_the_rest_of_the_widest():
    batches = buckets().batches(seed=3)
    rows = np.concatenate([rows for _, rows in batches])
    assert len(rows) == len(set(rows.tolist()))
    assert len(LENGTHS) - len(rows) < buckets().rows(128)
    for width, rows in batches:
        assert len(rows) == buckets().rows(width)
        assert LENGTHS[rows].max() <= width


def test_batches_hold_about_as_many_tokens():
    for width, rows in buckets().batches(seed=0):
        assert 2048 - 8 * width < width * len(rows) <= 2048


def test_every_pass_has_as_many_batches():
    assert {len(buckets().batches(seed)) for seed in range(5)} == {len(buckets())}


def test_passes_differ_and_repeat_by_seed():
    def order(seed):
        return np.concatenate([rows for _, rows in buckets().batches(seed)]).tolist()

    assert order(1) == order(1) != order(2)


def test_what_is_left_out_is_not_always_the_same():
    left = [set(range(5005)) - {int(r) for _, rows in buckets().batches(seed) for r in rows} for seed in range(9)]
    assert len(set.intersection(*left)) == 0
    assert len({frozenset(one) for one in left}) > 1


def test_short_sentences_that_came_from_a_narrower_bucket_are_spread_over_the_rows():
    lengths = np.array([4] * 20 + [16] * 44)  # 20 do not fill a batch of 64
    ((width, rows),) = Buckets(lengths, tokens=1024, widths=(8, 16), multiple=8).batches(seed=0)
    assert width == 16
    halves = (rows[:32] < 20).sum(), (rows[32:] < 20).sum()
    assert min(halves) > 3


def test_only_widths_that_are_needed_are_used():
    assert buckets(lengths=np.array([3, 30] * 100)).used == (8, 16, 24, 32)


def test_a_sentence_too_long_and_a_corpus_too_small():
    with pytest.raises(ValueError, match="300 tokens is longer than 256"):
        buckets(lengths=np.array([300, 2]))
    with pytest.raises(ValueError, match="5 sentence pairs do not fill one batch of 256"):
        buckets(lengths=np.array([5] * 5))


def test_a_batch_never_holds_more_tokens_than_were_asked_for():
    with pytest.raises(ValueError, match="1000 tokens do not hold 8 sentences of 128 tokens: take at least 1024"):
        buckets(tokens=1000)
    assert max(width * len(rows) for width, rows in buckets(tokens=1024).batches(seed=0)) <= 1024
