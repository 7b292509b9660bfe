"""Checkpoints survive what happens to disks, and say what is wrong with them."""

import errno
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from batchensemble.checkpoint import DamagedCheckpoint, load_checkpoint, save_checkpoint

LARGE = {"epoch": 2, "weight": torch.ones(1_000_000)}
SMALL = {"epoch": 2, "weight": torch.arange(300.0), "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "last.pt"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_disk_that_fills_up_leaves_the_last_checkpoint_whole(path: Path) -> None:
    save_checkpoint(path, {"epoch": 1})
    # the kernel itself refuses these bytes: whatever is written beside goes to a device that is always full
    path.with_name(f".last.pt.{os.getpid()}.{threading.get_ident()}.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"disk is full; .*last\.pt is as it was"):
        save_checkpoint(path, LARGE)
    assert load_checkpoint(path) == {"epoch": 1}
    assert [other.name for other in path.parent.iterdir()] == ["last.pt"]
    save_checkpoint(path, LARGE)  # after space was freed
    assert load_checkpoint(path)["epoch"] == 2


@pytest.mark.skipif(sys.platform == "win32", reason="files have no size limit there")
def test_a_disk_that_fills_up_in_the_middle(path: Path) -> None:
    save_checkpoint(path, {"epoch": 1})
    with limited(100_000), pytest.raises(OSError, match=r"File too large; .*last\.pt is as it was") as failure:
        save_checkpoint(path, LARGE)
    assert failure.value.errno == errno.EFBIG
    assert load_checkpoint(path) == {"epoch": 1}
    assert [other.name for other in path.parent.iterdir()] == ["last.pt"]


@contextmanager
def limited(size: int) -> Iterator[None]:
    """Files of this process may have so many bytes."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("keep", [0, 100, 3_000_000])
def test_a_damaged_checkpoint_is_named(path: Path, keep: int) -> None:
    save_checkpoint(path, LARGE)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DamagedCheckpoint, match=r"last\.pt is damaged: delete it"):
        load_checkpoint(path)


def test_a_checkpoint_cut_anywhere_is_damaged(path: Path) -> None:
    save_checkpoint(path, SMALL)
    whole = path.read_bytes()
    for keep in range(0, len(whole), 7):
        path.write_bytes(whole[:keep])
        with pytest.raises(DamagedCheckpoint, match=r"last\.pt is damaged: delete it"):
            load_checkpoint(path)


def test_what_is_no_checkpoint_is_damaged(path: Path) -> None:
    for content in (b"not a checkpoint" * 20, b"\x80\x02K\x03."):
        path.write_bytes(content)
        with pytest.raises(DamagedCheckpoint, match=r"last\.pt is damaged"):
            load_checkpoint(path)
    torch.save(3, path)
    with pytest.raises(DamagedCheckpoint, match=r"last\.pt is damaged"):
        load_checkpoint(path)


def test_what_the_disk_refuses_is_no_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(path, SMALL)

    def failing(self: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(self))

    monkeypatch.setattr(Path, "read_bytes", failing)
    with pytest.raises(OSError, match="Input/output error") as failure:
        load_checkpoint(path)
    assert failure.value.errno == errno.EIO


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory")], ids=repr)
def test_too_little_memory_is_no_damage(path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    save_checkpoint(path, SMALL)

    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(torch, "load", failing)
    with pytest.raises(type(error)) as found:
        load_checkpoint(path)
    assert found.value is error


SHORT_OF_MEMORY = """
    import resource, sys
    from pathlib import Path
    from batchensemble.checkpoint import load_checkpoint
    path = Path(sys.argv[1])
    load_checkpoint(path)  # whatever it takes to load one is loaded
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * resource.getpagesize() + 1.5 * path.stat().st_size  # for the bytes, not for the tensor
    resource.setrlimit(resource.RLIMIT_AS, (int(room), -1))
    try:
        load_checkpoint(path)
    except RuntimeError as error:
        print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_short_of_memory_is_not_told_to_delete_its_checkpoint(path: Path) -> None:
    save_checkpoint(path, {"weight": torch.ones(16_000_000)})
    command = [sys.executable, "-c", textwrap.dedent(SHORT_OF_MEMORY), str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "can't allocate memory" in said
