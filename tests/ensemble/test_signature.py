"""The signature of an ensemble: the network's own, plus `member`."""

import inspect
from typing import Any

import pytest

from batchensemble.ensemble.signature import with_member


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x, "(x, *, member=None)"),
        (lambda *xs: xs, "(*xs, member=None)"),
        (lambda x, *, y=1: x, "(x, *, y=1, member=None)"),
        (lambda **more: more, "(*, member=None, **more)"),
        (lambda: 0, "(*, member=None)"),
    ],
)
def test_signatures(function: Any, expected: str) -> None:
    assert str(with_member(inspect.signature(function))) == expected
