"""Switching to evaluation mode for a while, and back."""

import pytest
from torch import nn

from batchensemble.nn.mode import evaluating


def test_calls_that_overlap_in_shared_modules_leave_these_in_evaluation_until_the_last_one_ends() -> None:
    shared = nn.Dropout()
    one, two = nn.Sequential(nn.Linear(4, 4), shared), nn.Sequential(shared)
    first, second = evaluating(one), evaluating(two)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert [module.training for module in (one, two, shared)] == [True, False, False]
    second.__exit__(None, None, None)
    assert [module.training for module in (one, two, shared)] == [True, True, True]


def test_a_network_that_cannot_switch_modes_is_left_in_the_one_it_was_in() -> None:
    class Stuck(nn.Module):
        def train(self, mode: bool = True) -> "Stuck":
            raise RuntimeError("no other mode")

    net = nn.Sequential(nn.Dropout(), Stuck())
    with pytest.raises(RuntimeError, match="no other mode"), evaluating(net):
        pass
    assert net[0].training
    with evaluating(net[0]):
        pass
    assert net[0].training
