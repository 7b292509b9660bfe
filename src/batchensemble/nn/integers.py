"""The user's integers, of any kind: Python's, NumPy's, torch's."""

import operator
from typing import Any

import torch
from torch import Tensor


def check_count(name: str, value: int) -> int:
    """A positive integer of any kind (NumPy's, torch's) as an `int`; anything else is a `ValueError` that names it.

    Examples:
        >>> check_count("rank", torch.tensor(2))
        2
    """
    count = as_integer(value)
    if count is None or count < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return count


def as_integer(value: Any) -> int | None:
    """An integer of any kind as an `int`; `None` for anything else, and for truth values.

    Examples:
        >>> as_integer(torch.tensor(2)), as_integer(True), as_integer(2.0)
        (2, None, None)
    """
    if isinstance(value, bool) or (isinstance(value, Tensor) and value.dtype == torch.bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
