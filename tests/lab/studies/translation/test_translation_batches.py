"""Token batches: a function of seed and step, the same for every method and every process together."""

from collections import Counter

import numpy as np
import pytest
import torch

from batchensemble.lab.data.text import PAD, Buckets
from batchensemble.lab.studies.translation.batches import TokenBatches, validation_batches
from batchensemble.lab.studies.translation.corpora import load_text


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return load_text("toy", None, tmp_path_factory.mktemp("work"))


def made(data, steps=10, **more):
    return TokenBatches(data.train, Buckets(data.train.lengths, 1024), steps, 3, torch.device("cpu"), **more)


def test_steps_follow_each_other_however_they_are_cut_into_epochs(data):
    fine = [batch.source for number in range(30) for batch in made(data, 10).epoch(number)]
    coarse = [batch.source for number in range(3) for batch in made(data, 100).epoch(number)]
    assert len(made(data).buckets) < 100, "no pass ends within the test"
    assert all(torch.equal(one, other) for one, other in zip(fine, coarse, strict=True))


def test_any_epoch_can_be_asked_for_first(data):
    batches = made(data)
    later = [batch.target for batch in batches.epoch(20)]
    assert len(later) == len(batches) == 10
    list(batches.epoch(0))
    assert all(torch.equal(one, other.target) for one, other in zip(later, batches.epoch(20), strict=True))


def test_a_pass_takes_the_corpus_once(data):
    batches = made(data, steps=1)
    rows = [row for number in range(len(batches.buckets)) for batch in batches.epoch(number) for row in batch.source]
    taken, there = Counter(data.vocabulary.decode(row.tolist() for row in rows)), Counter(_texts(data, "source"))
    assert taken <= there
    assert taken.total() > 0.98 * there.total()


def test_source_and_target_belong_together(data):
    pairs = set(zip(_texts(data, "source"), _texts(data, "target"), strict=True))
    for batch in made(data).epoch(0):
        said = zip(*(data.vocabulary.decode(side.tolist()) for side in (batch.source, batch.target)), strict=True)
        assert set(said) <= pairs


def _texts(data, side):
    tokens = getattr(data.train, side)
    return data.vocabulary.decode(tokens.padded(np.arange(len(tokens)), int(tokens.lengths.max())).tolist())


def test_processes_share_a_batch(data):
    whole = list(made(data).epoch(1))
    shares = [list(made(data, rank=rank, world=2).epoch(1)) for rank in range(2)]
    for batch, one, other in zip(whole, *shares, strict=True):
        assert one.total == other.total == len(batch.source)
        for share in (one, other):
            assert torch.equal(share.source, batch.source[share.place])
        assert sorted([*one.place.tolist(), *other.place.tolist()]) == list(range(len(batch.source)))
        assert one.share == other.share == (batch.target != PAD).sum() / 2


def test_validation_takes_every_pair_once(data):
    batches = list(validation_batches(data.valid, 512, torch.device("cpu")))
    assert len(batches) > 1
    texts = [text for batch in batches for text in data.vocabulary.decode(batch.source.tolist())]
    assert sorted(texts) == sorted(data.valid.text("source"))
    assert all(batch.source.numel() <= 512 or len(batch.source) == 1 for batch in batches)
    assert sum(int((batch.target != PAD).sum()) for batch in batches) == data.valid.target.lengths.sum()
