"""Batches of pictures as a function of seed and epoch."""

from dataclasses import replace

import pytest
import torch

from batchensemble.lab.data import procedural
from batchensemble.lab.methods.ensembles import Stream
from batchensemble.lab.studies.images import DATA, ImageBatches, View, load_images


@pytest.fixture(scope="module")
def data():
    return procedural(10, train=44, test=1)[0]


@pytest.fixture
def batches(data):
    """The pictures themselves, unmoved and only divided by 255, so that rows can be recognised."""
    plain = View(torch.zeros(3), torch.ones(3), pad=0)
    return ImageBatches(data, plain, (Stream(1, 1),), 8)


def rows_of(batch, data):
    """Which pictures a batch holds."""
    pixels = data.images.float() / 255
    return [int((pixels == image).flatten(1).all(1).nonzero()) for image in batch.images]


def test_an_epoch_shows_every_picture_at_most_once_and_the_next_in_another_order(batches, data):
    first, again, second = ([rows_of(b, data) for b in batches.epoch(number)] for number in (0, 0, 1))
    assert len(first) == len(batches) == 5
    assert first == again
    assert first != second
    shown = [row for rows in first for row in rows]
    assert len(set(shown)) == len(shown) == 40


def test_labels_stay_with_their_pictures(batches, data):
    for batch in batches.epoch(3):
        assert batch.labels.tolist() == data.labels[rows_of(batch, data)].tolist()
        assert batch.place is None


def test_streams_follow_each_other(batches, data):
    both = replace(batches, streams=(Stream(1, 1), Stream(2, 2)))
    alone = [replace(batches, streams=(stream,)) for stream in both.streams]
    for together, *parts in zip(both.epoch(0), *(one.epoch(0) for one in alone), strict=True):
        assert rows_of(together, data) == [row for part in parts for row in rows_of(part, data)]


def test_own_crops_of_the_same_pictures(data):
    crops = ImageBatches(data, View.of(data, pad=4), (Stream(1, 5), Stream(1, 6)), 8)
    batch = next(crops.epoch(0))
    assert torch.equal(batch.labels[:8], batch.labels[8:])
    assert not torch.equal(batch.images[:8], batch.images[8:])


@pytest.mark.parametrize("own_members", [False, True])
def test_processes_share_the_batch_that_one_would_have(data, own_members):
    one = ImageBatches(data, View.of(data, pad=4), (Stream(1, 1), Stream(1, 2)), 8)
    ranks = [replace(one, rank=rank, world=2, own_members=own_members) for rank in (0, 1)]
    for whole, *parts in zip(one.epoch(2), *(rank.epoch(2) for rank in ranks), strict=True):
        for part in parts:
            assert part.total == 16
            assert torch.equal(part.images, whole.images[part.place])
            assert torch.equal(part.labels, whole.labels[part.place])
        assert sorted(torch.cat([part.place for part in parts]).tolist()) == list(range(16))


def test_the_view_centres_and_scales(data):
    seen = View.of(data, pad=0)(data.images)
    assert seen.mean((0, 2, 3)).abs().max() < 1e-5
    torch.testing.assert_close(seen.std((0, 2, 3), correction=0), torch.ones(3))


def test_too_few_pictures_and_unknown_data_are_named(batches):
    with pytest.raises(ValueError, match="a batch of 64 rows needs more than the 44 pictures"):
        replace(batches, size=64)
    with pytest.raises(ValueError, match=r"data must be one of cifar10, .*; got 'mnist'"):
        load_images("mnist", None)
    assert {"cifar10", "cifar100"} <= set(DATA)
