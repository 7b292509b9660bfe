"""Processes of their own, for what must survive one that is killed."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")


def command(path: Path, code: str) -> list[str]:
    """Runs code that knows `path` in a process of its own: a fork of this one would take pytest along."""
    known = f"""
import os, signal, sys, time
from pathlib import Path
from batchensemble.disk import written_whole
from batchensemble.locks import Busy, locked
path = Path({str(path)!r})
"""
    return [sys.executable, "-W", "ignore", "-c", known + textwrap.dedent(code)]


def said(path: Path, code: str) -> str:
    """What a process prints."""
    return subprocess.run(command(path, code), capture_output=True, text=True, check=True).stdout


def begun(path: Path, code: str) -> subprocess.Popen[str]:
    """A process that has printed its first line."""
    process = subprocess.Popen(command(path, code), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def holder(path: Path, then: str = "time.sleep(60)") -> subprocess.Popen[str]:
    """A process that holds the lock of `path`."""
    code = f"""
        with locked(path):
            print("begun", flush=True)
            {then}
    """
    return begun(path, code)
