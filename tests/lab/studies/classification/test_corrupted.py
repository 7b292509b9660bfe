"""Which files a corrupted test set is read from."""

from pathlib import Path

import numpy as np
import torch

from batchensemble.lab.data import ImageSet
from batchensemble.lab.studies.classification import corrupted
from batchensemble.lab.studies.study import Context

TEST = ImageSet(torch.zeros(10_000, 3, 32, 32, dtype=torch.uint8), torch.zeros(10_000).long(), 10, "cifar10-test")
SMALL = 2  # images of a file, instead of ten thousand


def put(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "labels.npy", np.zeros(5 * SMALL, np.uint8))
    for name in names:
        np.save(folder / f"{name}.npy", np.zeros((5 * SMALL, 32, 32, 3), np.uint8))


def test_a_folder_that_an_interrupted_making_left_is_not_taken_for_the_published_one(tmp_path, monkeypatch):
    def make(test, folder, *, names, **_):
        put(folder, *names)
        return folder

    monkeypatch.setattr(corrupted, "make_cifar_c", make)
    put(tmp_path / "CIFAR-10-C", "gaussian_noise")
    context = Context(tmp_path, tmp_path / "work")
    found = list(corrupted.corrupted_sets(TEST, ["gaussian_noise", "fog"], context))
    assert [(name, severity) for name, severity, _ in found[-5:]] == [("fog", severity) for severity in range(1, 6)]
    assert (tmp_path / "work" / "corrupted" / "cifar10-test-10000" / "fog.npy").exists()


def test_what_lies_among_the_data_is_not_made_again(tmp_path):
    put(tmp_path / "CIFAR-10-C", "gaussian_noise", "fog")
    context = Context(tmp_path, tmp_path / "work")
    assert len(list(corrupted.corrupted_sets(TEST, ["gaussian_noise", "fog"], context))) == 11
    assert not (tmp_path / "work").exists()
