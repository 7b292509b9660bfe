"""Checkpoints survive what happens to disks."""

import errno
import os
import resource
import threading
from contextlib import contextmanager

import pytest
import torch

from batchensemble.lab.training.checkpoints import Checkpoint, CorruptCheckpoint

LARGE = {"epoch": 2, "weight": torch.ones(1_000_000)}


def test_a_disk_that_fills_up_leaves_the_last_checkpoint_whole(tmp_path):
    checkpoint = Checkpoint(tmp_path / "last.pt")
    checkpoint.save({"epoch": 1})
    # the kernel itself refuses these bytes: whatever is written beside goes to a device that is always full
    (tmp_path / f".last.pt.{os.getpid()}.{threading.get_ident()}.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"disk is full; .*last\.pt is as it was"):
        checkpoint.save(LARGE)
    assert checkpoint.load() == {"epoch": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]
    checkpoint.save(LARGE)  # after space was freed
    assert checkpoint.load()["epoch"] == 2


def test_a_disk_that_fills_up_in_the_middle(tmp_path):
    checkpoint = Checkpoint(tmp_path / "last.pt")
    checkpoint.save({"epoch": 1})
    with limited(100_000), pytest.raises(OSError, match=r"File too large; .*last\.pt is as it was") as failure:
        checkpoint.save(LARGE)
    assert failure.value.errno == errno.EFBIG
    assert checkpoint.load() == {"epoch": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]


@contextmanager
def limited(size):
    """Files of this process may have so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("keep", [0, 100, 3_000_000])
def test_a_damaged_checkpoint_is_named(tmp_path, keep):
    checkpoint = Checkpoint(tmp_path / "last.pt")
    checkpoint.save(LARGE)
    checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:keep])
    with pytest.raises(CorruptCheckpoint, match=r"last\.pt is damaged: delete it"):
        checkpoint.load()
