"""Structures that networks return."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor


class Point(NamedTuple):
    x: Tensor
    name: str


@dataclass
class Box:
    inside: Any
    note: str = ""
