"""The line under every table and figure."""

from dataclasses import replace

import pytest
from fake_records import WHERE, evidence, place

from batchensemble.lab.report.circumstances import circumstances, seed_counts


def test_one_epoch_is_one() -> None:
    assert "· 1 epoch ·" in circumstances(evidence([place({"epochs": 1}, {"method": "A"})]))
    assert "· 2 epochs ·" in circumstances(evidence([place({"epochs": 2}, {"method": "A"})]))


def test_a_package_that_was_not_installed_has_no_version() -> None:
    found = place({"nll": 1.0}, {"method": "A"})
    source = replace(WHERE, versions={**WHERE.versions, "batchensemble": "not installed"})
    text = circumstances(evidence([replace(found, record=replace(found.record, provenance=source))]))
    assert "python 3.12.3, torch 2.13.0 · commit" in text
    assert "not installed" not in text


def test_versions_and_commits_are_named_once() -> None:
    sources = [
        replace(WHERE, versions={"python": "3.12.3", "torch": "2.11.0"}, commit="abc"),
        replace(WHERE, versions={"python": "3.12.3", "torch": "2.13.0", "batchensemble": "0.1.0"}),
        replace(WHERE, versions={"python": "3.12.3", "torch": "2.13.0"}, commit="abc"),
    ]
    places = [place({"nll": 1.0}, {"method": "A"}, seed) for seed in range(3)]
    made = [
        replace(one, record=replace(one.record, provenance=source)) for one, source in zip(places, sources, strict=True)
    ]
    told = "python 3.12.3, torch 2.11.0 or 2.13.0, batchensemble 0.1.0 · commits abc, 0123456789ab"
    assert circumstances(evidence(made)).endswith(told)


@pytest.mark.parametrize(
    ("rows", "counts", "which"),
    [
        ({"A": 1, "B": 1}, "1 seed", "seed 0"),
        ({"A": 3, "B": 3}, "3 seeds", "seeds 0 to 2"),
        ({"Single": 4, "A": 1, "B": 1}, "1 seed (Single: 4)", "seed 0 (Single: 0 to 3)"),
        ({"Single": 12, "A": 3}, "3 seeds (Single: 12)", "seeds 0 to 2 (Single: 0 to 11)"),
        ({"A": 1, "B": 2, "C": 3, "D": 4}, "1 to 4 seeds", "seeds 0 to 3, 1 to 4 of each row"),
    ],
)
def test_seeds_are_those_of_each_row(rows: dict[str, int], counts: str, which: str) -> None:
    places = [
        place({"nll": 1.0}, {"method": name, "data": "CIFAR"}, seed) for name, n in rows.items() for seed in range(n)
    ]
    assert seed_counts(evidence(places)) == counts
    assert f"· {which} ·" in circumstances(evidence(places))


def test_rows_whose_kinds_differ_in_seeds_have_a_range() -> None:
    places = [place({"nll": 1.0}, {"method": "A", "data": "Ten"}, seed) for seed in range(2)]
    places.append(place({"nll": 1.0}, {"method": "A", "data": "Hundred"}))
    assert seed_counts(evidence(places)) == "1 to 2 seeds"
