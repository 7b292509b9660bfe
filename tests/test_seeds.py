"""A seed is the same on every machine and in every release: what was trained and recorded follows from it."""

from itertools import product

from batchensemble.seeds import seed_of


def test_seeds_stay_what_they_are() -> None:
    assert seed_of(0, 1) == 2918264622725855778
    assert seed_of(3, 4, 1) == 1916627889199562583
    assert seed_of(0, "training", 1) == 4849718475313335584


def test_seeds_are_such_that_torch_takes_and_all_different() -> None:
    parts = list(product((-1, 0, 1, 2**63), ("decision", "training"), range(50)))
    seeds = {seed_of(*part) for part in parts}
    assert len(seeds) == len(parts)
    assert all(0 <= seed < 2**63 for seed in seeds)
