"""Freed memory is kept, as far as the C library lets itself be asked."""

import ctypes
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from batchensemble.lab.studies.memory import keep_freed_memory


def test_glibc_is_asked_to_keep_what_is_freed() -> None:
    assert keep_freed_memory() == (platform.libc_ver()[0] == "glibc")


def test_freed_memory_causes_no_page_faults() -> None:
    code = """
import resource, torch
from batchensemble.lab.studies.memory import keep_freed_memory

def faults_of_ten():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.empty(2**24).fill_(1.0)  # 64 MiB: above every threshold of an older glibc
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

returned = faults_of_ten()
if keep_freed_memory():
    faults_of_ten()
    assert faults_of_ten() < returned / 5
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    assert not keep_freed_memory()
