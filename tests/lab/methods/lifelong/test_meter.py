"""Operations by torch's counter; every step of a training like its first."""

import torch

from batchensemble.lab.methods.lifelong.meter import Meter

A, B = torch.ones(2, 3), torch.ones(3, 5)
ONE = 2 * 2 * 3 * 5


def test_the_first_step_stands_for_all() -> None:
    meter = Meter()
    for training in range(2):
        for step in range(4):
            with meter.around_step(step):
                _ = A @ B if training == 0 else (A @ B, A @ B)
    assert meter.operations == 4 * ONE + 4 * 2 * ONE


def test_a_training_that_goes_on_counts_its_own_steps() -> None:
    meter = Meter()
    for step in range(7, 10):
        with meter.around_step(step):
            _ = A @ B
    assert meter.operations == 3 * ONE
