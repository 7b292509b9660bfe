"""A task's name is fit for a file's name."""

from pathlib import Path

import pytest
from small_tasks import QUICK, data, net

from batchensemble.lifelong import Learner
from batchensemble.lifelong.names import checked_name


@pytest.mark.parametrize("letter", ["a", "ä"])
def test_a_name_is_as_long_as_a_disk_takes_it(letter: str) -> None:
    longest = 128 // len(letter.encode())
    assert checked_name(letter * longest) == letter * longest
    with pytest.raises(ValueError, match="at most 128 bytes"):
        checked_name(letter * (longest + 1))


def test_names_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, training=QUICK)
    learner.learn(data(0), "birds")
    learner.save_task("birds", tmp_path / "a")
    same = "'Birds' would share a file with task 'birds'"
    with pytest.raises(ValueError, match=same):
        learner.learn(data(1), "Birds")
    with pytest.raises(ValueError, match="'B' would share a file with task 'b'"):
        learner.learn_together({"b": data(1), "B": data(2)})
    with pytest.raises(ValueError, match=same):
        learner.load_task(tmp_path / "a", "Birds")
    assert learner.tasks == ("birds",)
