import importlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import batchensemble as be
from batchensemble.lab.models import resnet
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run
from batchensemble.lab.report.quantity import quantity
from batchensemble.lab.store import Store

ROOT = Path(__file__).resolve().parents[1]


def test_numbers_on_pages_are_those_of_the_records() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_numbers.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """docs/make_numbers.py as a module."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("make_numbers")


def test_a_number_that_was_edited_by_hand_is_drawn_anew(numbers: ModuleType) -> None:
    page = "before\n<!-- numbers: translation_cost -->\n{}\n<!-- end -->\nafter\n"
    fresh = numbers.drawn(page.format("| 0.50 |"))
    assert fresh == page.format(numbers.NUMBERS["translation_cost"]())
    assert fresh != page.format("| 0.50 |")


def test_every_block_is_on_a_page(numbers: ModuleType) -> None:
    named = [match[2] for page in numbers.PAGES for match in numbers.MARK.finditer(page.read_text())]
    assert set(named) == set(numbers.NUMBERS)


def test_what_a_record_lacks_was_not_measured(numbers: ModuleType) -> None:
    complete = Record(Run("classification", {}, "smoke"), {"scaled_nll": 0.5}, Provenance("a laptop"))
    lacking = replace(complete, metrics={})
    draw = numbers.classification._mean
    assert draw([complete, complete], quantity("scaled_nll")) == "0.500"
    assert draw([complete, lacking], quantity("scaled_nll")) == "not measured"


@pytest.mark.parametrize(("naive", "said"), [(4.8, False), (4.2, True), (None, False)])
def test_slower_than_separate_networks_is_said_of_what_was_measured(numbers: ModuleType, naive, said) -> None:
    """Here ours takes 4.5 times as long as one network; four networks, one after another, may take more than 4."""
    speed = numbers.speed
    row = {"case": "inference, 8 inputs", "denominator": speed.SINGLE, "how": "eager", "mib": None}
    step = {**row, "case": "training step, 8 rows", "way": speed.OURS, "ratio": 1.5}
    rows = [{**row, "way": speed.OURS, "ratio": 4.5}, step]
    rows += [{**row, "way": speed.ONE_BY_ONE, "ratio": naive}] if naive else []
    words = speed._words(speed.Machine("ResNet, 4 members", 4, "a laptop, torch 2", rows))
    assert "inference takes 4.5 times as long as one network" in words
    assert ("more than 4 separate networks one after another" in words) == said


def test_every_committed_record_can_be_read() -> None:
    records = list(Store(ROOT / "results").all())
    assert {record.run.scale for record in records} == {"paper", "short", "small"}


def test_what_the_readme_says_of_parameters() -> None:
    summary = be.summary(be.convert(resnet(32, 4, 10), members=4))
    assert (summary.network, summary.parameters) == (7_427_914, 7_466_652)
    assert f"{100 * summary.overhead:.2f} %" in (ROOT / "README.md").read_text()
    assert f"{summary.network:,}" in (ROOT / "README.md").read_text()
