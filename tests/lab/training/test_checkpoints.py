"""Checkpoints survive what happens to disks."""

import os

import pytest
import torch

from batchensemble.lab.training.checkpoints import Checkpoint, CorruptCheckpoint

LARGE = {"epoch": 2, "weight": torch.ones(1_000_000)}


def test_a_disk_that_fills_up_leaves_the_last_checkpoint_whole(tmp_path):
    checkpoint = Checkpoint(tmp_path / "last.pt")
    checkpoint.save({"epoch": 1})
    # the kernel itself refuses these bytes: whatever is written beside goes to a device that is always full
    (tmp_path / f".last.pt.{os.getpid()}.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"disk is full; .*last\.pt is as it was"):
        checkpoint.save(LARGE)
    assert checkpoint.load() == {"epoch": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]
    checkpoint.save(LARGE)  # after space was freed
    assert checkpoint.load()["epoch"] == 2


@pytest.mark.parametrize("keep", [0, 100, 3_000_000])
def test_a_damaged_checkpoint_is_named(tmp_path, keep):
    checkpoint = Checkpoint(tmp_path / "last.pt")
    checkpoint.save(LARGE)
    checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:keep])
    with pytest.raises(CorruptCheckpoint, match=r"last\.pt is damaged: delete it"):
        checkpoint.load()
