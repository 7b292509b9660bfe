"""What a training took, whichever process did it."""

import json
import math
from pathlib import Path

from batchensemble.lab.methods.lifelong.account import Account
from batchensemble.lab.methods.lifelong.meter import Meter
from batchensemble.lifelong import Epoch


def epoch(number: int) -> Epoch:
    return Epoch(("a",), number, 3, loss=1 / number, accuracy=0.5, seconds=2.0)


def trained(path: Path, *numbers: int, operations: int = 10) -> Account:
    account = Account(Meter(), path)
    for number in numbers:
        account.meter.operations += operations
        account.note(epoch(number))
    return account


def test_a_training_that_is_done_is_counted_from_its_file(tmp_path: Path) -> None:
    trained(tmp_path / "a.json", 1, 2, 3)
    again = Account(Meter(), tmp_path / "a.json")
    again.settle(3)
    assert again.meter.operations == 30
    assert again.meter.former_seconds == 6.0
    lines = json.loads((tmp_path / "a.json").read_text())
    assert again.meter.former_processor_seconds == sum(line["processor_seconds"] for line in lines)
    assert again.history() == [epoch(number) for number in (1, 2, 3)]


def test_one_that_goes_on_is_counted_once(tmp_path: Path) -> None:
    trained(tmp_path / "a.json", 1, 2)
    again = trained(tmp_path / "a.json", 3)
    again.settle(3)
    assert again.meter.operations == 30
    assert again.meter.former_seconds == 4.0


def test_one_that_starts_anew_forgets_what_it_gave_up(tmp_path: Path) -> None:
    trained(tmp_path / "a.json", 1, 2, operations=7)
    again = trained(tmp_path / "a.json", 1)
    again.settle(1)
    assert again.meter.operations == 10
    assert len(json.loads((tmp_path / "a.json").read_text())) == 1


def test_an_epoch_that_is_noted_and_done_again_is_counted_once(tmp_path: Path) -> None:
    trained(tmp_path / "a.json", 1, 2)
    again = trained(tmp_path / "a.json", 2, 3)  # the checkpoint knew only of the first
    again.settle(3)
    assert again.meter.operations == 30
    assert again.meter.former_seconds == 2.0
    assert again.history() == [epoch(number) for number in (1, 2, 3)]


def test_what_a_lost_file_told_is_unknown(tmp_path: Path) -> None:
    unknown = Account(Meter(), tmp_path / "a.json")
    unknown.settle(3)
    assert math.isnan(unknown.meter.operations)
