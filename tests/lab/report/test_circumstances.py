"""The line under every table and figure."""

from dataclasses import replace

from fake_records import WHERE, evidence, place

from batchensemble.lab.report.circumstances import circumstances


def test_one_epoch_is_one() -> None:
    assert "· 1 epoch ·" in circumstances(evidence([place({"epochs": 1}, {"method": "A"})]))
    assert "· 2 epochs ·" in circumstances(evidence([place({"epochs": 2}, {"method": "A"})]))


def test_a_package_that_was_not_installed_has_no_version() -> None:
    found = place({"nll": 1.0}, {"method": "A"})
    source = replace(WHERE, versions={**WHERE.versions, "batchensemble": "not installed"})
    text = circumstances(evidence([replace(found, record=replace(found.record, provenance=source))]))
    assert "python 3.12.3, torch 2.13.0 · commit" in text
    assert "not installed" not in text
