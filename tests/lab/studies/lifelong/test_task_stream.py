"""Streams deal every class once a round, from memory or from folders."""

from pathlib import Path

import numpy as np
import pytest
import torch

from batchensemble.lab.data import procedural
from batchensemble.lab.studies.lifelong.streams import FOLDERS, ImageStream, open_stream


def stream() -> ImageStream:
    train, test = procedural(100, train=200, test=100)
    return ImageStream(train, test, classes=10, seed=0, pad=2)


def test_a_round_shows_every_class_once_and_the_next_deals_anew() -> None:
    tasks = stream()
    pictures = [tasks.task(number).train.rows(range(20))[0] for number in range(10)]
    assert len(torch.cat(pictures).unique(dim=0)) == 200
    again = tasks.task(10).train.rows(range(20))[0]
    assert not any(torch.equal(again, one) for one in pictures)
    assert torch.equal(tasks.task(0).train.rows(range(20))[0], pictures[0])


def test_pictures_are_normalised_and_moved_in_training_only() -> None:
    tasks = stream()
    x, _ = tasks.task(0).test.rows(range(10))
    assert torch.equal(tasks.view(x), tasks.view(x))
    torch.manual_seed(0)
    moved = tasks.augment(x)
    assert moved.shape == x.shape
    assert moved.dtype == torch.float32
    assert not torch.equal(moved, tasks.view(x))


def test_a_share_of_the_pictures_is_a_share_of_every_class() -> None:
    small = open_stream("figures", 10, share=0.5)
    assert len(small.task(0).train) == len(open_stream("figures", 10).task(0).train) / 2


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="classes must divide the 100 of figures, got 7"):
        open_stream("figures", 7)


def test_folders_are_streams(tmp_path: Path) -> None:
    from PIL import Image

    for part in FOLDERS["tiny-imagenet"][:2]:
        for name in "abcd":
            folder = tmp_path / part / name / "images"
            folder.mkdir(parents=True)
            for i in range(3):
                grey = np.full((20, 30, 3), 60 * "abcd".index(name) + i, dtype=np.uint8)
                Image.fromarray(grey).save(folder / f"{i}.png")
    tasks = open_stream("tiny-imagenet", 2, root=tmp_path)
    seen = set()
    for number in range(2):
        x, y = tasks.task(number).train.rows(range(6))
        assert x.shape == (6, 3, 64, 64)
        assert y.tolist() == [0, 0, 0, 1, 1, 1]
        assert tasks.view(x).dtype == torch.float32
        seen |= {int(value) // 60 for value in x[:, 0, 0, 0]}
    assert seen == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="has 4 classes, too few for task 2 of 2"):
        tasks.task(2)
    with pytest.raises(FileNotFoundError, match="expected a folder of pictures for every class"):
        open_stream("imagenet", 2, root=tmp_path).task(0)
