"""A task's name is fit for a file's name."""

import pytest

from batchensemble.lifelong.names import checked_name


@pytest.mark.parametrize("letter", ["a", "ä"])
def test_a_name_is_as_long_as_a_disk_takes_it(letter: str) -> None:
    longest = 128 // len(letter.encode())
    assert checked_name(letter * longest) == letter * longest
    with pytest.raises(ValueError, match="at most 128 bytes"):
        checked_name(letter * (longest + 1))
