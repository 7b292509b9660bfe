"""Locks: each goes with its process, however that ends."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import UNIX, holder, said

from batchensemble import locks
from batchensemble.locks import Busy, held, locked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def test_a_lock_goes_with_a_killed_process(path: Path) -> None:
    with holder(path) as process:
        with pytest.raises(Busy, match=r"another process is working on .*checkpoint"), locked(path):
            pass
        process.kill()
    with locked(path):
        pass


def test_who_waits_has_it_when_the_other_dies(path: Path) -> None:
    with holder(path, then="time.sleep(1); os._exit(3)") as process:
        began = time.monotonic()
        with locked(path, wait=True):
            assert process.wait() == 3
            assert time.monotonic() - began < 30


def test_a_lock_is_given_back(path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), locked(path):
            raise ZeroDivisionError


def test_who_is_busy_inside_is_named(path: Path) -> None:
    inner = path.with_name("inner")
    with locked(inner), pytest.raises(Busy, match=r"working on .*inner"), locked(path), locked(inner):
        pass


@UNIX
def test_a_lock_is_given_back_while_a_forked_child_lives(path: Path) -> None:
    code = """
        with locked(path):
            child = os.fork()
            if not child:
                time.sleep(60)
                os._exit(0)
        try:
            with locked(path):
                print("again")
        finally:
            os.kill(child, signal.SIGKILL)
    """
    assert said(path, code) == "again\n"


@UNIX
def test_a_forked_child_that_lets_go_keeps_its_parents_lock(path: Path) -> None:
    code = """
        with locked(path):
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                try:
                    with locked(path):
                        print("free")
                except Busy:
                    print("still held")
    """
    assert said(path, code) == "still held\n"


@UNIX
def test_a_lock_ends_with_the_process_that_took_it_not_with_its_forked_children(path: Path) -> None:
    code = """
        ready, told = os.pipe()
        taker = os.fork()
        if not taker:
            with locked(path):
                if not os.fork():  # as the workers of a loader are
                    os.write(told, str(os.getpid()).encode())
                time.sleep(60)
        child = int(os.read(ready, 20))
        os.kill(taker, signal.SIGKILL)
        os.waitpid(taker, 0)
        try:
            with locked(path):
                print("free")
        finally:
            os.kill(child, signal.SIGKILL)
    """
    assert said(path, code) == "free\n"


def refusing(number: int) -> Callable[[int], Any]:
    def refused(file: int) -> None:
        raise OSError(number, os.strerror(number))

    return refused


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_disk_without_locks_is_warned_of(path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    for name in ("_lock", "_unlock"):
        monkeypatch.setattr(locks, name, refusing(number))
    with pytest.warns(UserWarning, match="has no locks"), locked(path):
        pass


def test_another_failure_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_lock", refusing(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"), held(path.with_name(".lock"), "busy"):
        pass
