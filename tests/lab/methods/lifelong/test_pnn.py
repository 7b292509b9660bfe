"""Columns look at all earlier ones, at every level but the first."""

import torch
from torch import nn

from batchensemble.lab.methods.lifelong import PNN, Lesson, lenet_trunk
from batchensemble.lifelong import Training
from batchensemble.lifelong.data import Part

NOTHING = Training(epochs=0)
X = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def columns(count: int = 3):
    student = PNN().begin(lenet_trunk, 0)
    for number in range(count):
        student.learn(Lesson(number, Part.of(str(number), (X, torch.arange(4) % 2)), NOTHING))
    return student


def test_adapters_are_as_wide_as_one_column_and_see_all_earlier_ones() -> None:
    shapes = [[tuple(a.down.weight.shape) for a in column.adapters] for column in columns().columns]
    assert shapes == [[], [(6, 6), (16, 16), (120, 120)], [(6, 12), (16, 32), (120, 240)]]


def test_a_column_is_its_blocks_and_what_earlier_columns_add() -> None:
    student = columns(2)
    first, second = student.columns
    h0, h1 = X, X
    for level in range(4):
        if level:
            adapter = second.adapters[level - 1]
            seen = adapter.scale * h0.movedim(1, -1)
            h1 = h1 + adapter.up(torch.relu(adapter.down(seen))).movedim(-1, 1)
        h0, h1 = first.trunk.blocks[level](h0), second.trunk.blocks[level](h1)
    torch.testing.assert_close(student.logits(X, 1), second.head(h1))
    torch.testing.assert_close(student.logits(X, 0), nn.Sequential(first.trunk, first.head)(X))
