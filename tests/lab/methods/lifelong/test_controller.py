"""The controller learns what earns most."""

import torch

from batchensemble.lab.methods.lifelong.controller import Controller


def test_it_learns_to_choose_what_is_rewarded() -> None:
    controller = Controller(layers=3, choices=4, seed=0, lr=1e-2)
    chosen = [controller.choose() for _ in range(30)]
    early = sum(sum(c == 2 for c in choice) for choice in chosen) / 90
    for _ in range(250):
        choice = controller.choose()
        controller.learn(choice, reward=sum(c == 2 for c in choice) / 3)
    chosen = [controller.choose() for _ in range(30)]
    late = sum(sum(c == 2 for c in choice) for choice in chosen) / 90
    assert early < 0.5
    assert late > 0.8


def test_choices_follow_from_the_seed_alone() -> None:
    torch.manual_seed(1)
    first = [Controller(4, 30, seed=3).choose() for _ in range(2)]
    torch.manual_seed(2)
    assert first == [Controller(4, 30, seed=3).choose() for _ in range(2)]
