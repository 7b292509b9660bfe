"""A checkpoint is replaced whole, or stays as it was."""

import os
import threading
from pathlib import Path

import pytest

from batchensemble.checkpoint import DamagedCheckpoint, save_checkpoint
from batchensemble.lifelong.checkpoint import Checkpoint


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_says_so_and_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "last.pt", {"what": "this"})
    checkpoint.save({"epoch": 1})
    (tmp_path / f".last.pt.{os.getpid()}.{threading.get_ident()}.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"the disk is full; .*last\.pt is as it was before"):
        checkpoint.save({"epoch": 2})
    assert checkpoint.load() == {"identity": {"what": "this"}, "epoch": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]


def test_a_file_that_does_not_say_whose_it_is_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "last.pt", {"epoch": 1})
    with pytest.raises(DamagedCheckpoint, match=r"last\.pt does not say whose training it holds: delete it"):
        Checkpoint(tmp_path / "last.pt", {"what": "this"}).load()
