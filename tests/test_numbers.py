import subprocess
import sys
from pathlib import Path

import batchensemble as be
from batchensemble.lab.models import resnet

ROOT = Path(__file__).resolve().parents[1]


def test_numbers_on_pages_are_those_of_the_records() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_numbers.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_readme_says_of_parameters() -> None:
    summary = be.summary(be.convert(resnet(32, 4, 10), members=4))
    assert (summary.network, summary.parameters) == (7_427_914, 7_466_652)
    assert f"{100 * summary.overhead:.2f} %" in (ROOT / "README.md").read_text()
    assert f"{summary.network:,}" in (ROOT / "README.md").read_text()
