"""Freed memory is kept, as far as the C library lets itself be asked."""

import ctypes
import platform
from types import SimpleNamespace

import pytest

from batchensemble.lab.studies.memory import keep_freed_memory


def test_glibc_is_asked_to_keep_what_is_freed() -> None:
    assert keep_freed_memory() == (platform.libc_ver()[0] == "glibc")


def test_an_older_glibc_is_asked_for_what_it_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}

    def mallopt(option: int, value: int) -> int:
        refused = option == -3 and value > 2**25
        if not refused:
            told[option] = value
        return int(not refused)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=mallopt))
    assert keep_freed_memory()
    assert told == {-3: 2**25, -1: 2**30}


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    assert not keep_freed_memory()
