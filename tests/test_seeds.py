"""A seed is the same on every machine and in every release: what was trained and recorded follows from it."""

from itertools import product

import pytest
import torch

from batchensemble.seeds import seed_of, seeded


def test_seeds_stay_what_they_are() -> None:
    assert seed_of(0, 1) == 2918264622725855778
    assert seed_of(3, 4, 1) == 1916627889199562583
    assert seed_of(0, "training", 1) == 4849718475313335584


def test_seeds_are_such_that_torch_takes_and_all_different() -> None:
    parts = list(product((-1, 0, 1, 2**63), ("decision", "training"), range(50)))
    seeds = {seed_of(*part) for part in parts}
    assert len(seeds) == len(parts)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_seeding_reaches_no_device_that_was_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(torch, "manual_seed", seeds.append)  # seeds every device there is
    with seeded(3), seeded(4, "cpu"), seeded(5, "cpu", torch.device("meta")):
        assert torch.default_generator.initial_seed() == 5
    assert not seeds
    with seeded(6, "cpu", "mps"):
        assert seeds == [6]
