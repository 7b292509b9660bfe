"""The examples run, as a reader would run them, and stay short."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_the_examples_are_numbered_without_a_gap() -> None:
    assert [int(path.name[:2]) for path in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))


def test_the_docs_show_every_example() -> None:
    page = (Path(__file__).parents[1] / "docs" / "examples.md").read_text()
    assert re.findall(r'^--8<-- "examples/(.+)"$', page, re.M) == [path.name for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_runs(path: Path, tmp_path) -> None:
    assert len(path.read_text().splitlines()) <= 60
    warnings = ["-W", "error", "-W", "ignore::FutureWarning", "-W", "ignore::DeprecationWarning"]  # torch's own
    run = subprocess.run([sys.executable, *warnings, path], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip()
