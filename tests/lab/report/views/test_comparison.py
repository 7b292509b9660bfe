"""Tables: what is missing is there, the paper's number is beside ours, and files can be read back."""

import csv
import io
from dataclasses import replace

import numpy as np
from fake_records import evidence, place

from batchensemble.lab.records import Published
from batchensemble.lab.report.evidence import Place
from batchensemble.lab.report.views import bars, comparison, over_steps


def test_markdown_has_mean_spread_paper_seeds_and_circumstances(accuracy_evidence) -> None:
    text = comparison("accuracy", "ece", columns="data", title="Accuracy")(accuracy_evidence).markdown()
    found = accuracy_evidence.summary("accuracy", method="Single", data="CIFAR-10")
    assert f"| Single | {100 * found.mean:.2f} ± {100 * found.spread:.2f} (paper 95.31) |" in text
    assert "| missing | missing | 3 / 0 of 3 | 250 |" in text  # the naive ensemble has no CIFAR-100
    assert "| 2 of 3 | 375 |" in text
    for part in ("Small scale", "seeds 0 to 2", "250 or 375 epochs", "NVIDIA H200", "torch 2.13.0", "0123456789ab"):
        assert part in text
    assert "5 of 24 runs are missing" in text


def test_csv_reads_back_as_the_same_numbers(accuracy_evidence) -> None:
    table = comparison("accuracy", rows=("data", "method"))(accuracy_evidence)
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    single, *_ = rows
    numbers = accuracy_evidence.numbers("accuracy", method="Single", data="CIFAR-10")
    assert float(single["accuracy (%)"]) == np.float64(f"{100 * np.mean(numbers):.6g}")
    assert float(single["accuracy (%) spread"]) == np.float64(f"{100 * np.std(numbers, ddof=1):.6g}")
    assert (single["accuracy (%) n"], single["accuracy (%) paper"]) == ("3", "95.31")
    assert ("CIFAR-100", "Naive ensemble") not in [(row["data"], row["method"]) for row in rows]  # it was not run
    assert all("Small scale" in row["circumstances"] for row in rows)


def test_missing_not_measured_and_never_asked_for_are_told_apart() -> None:
    places = [
        place({"accuracy": 0.9}, {"method": "A", "data": "x"}),
        place({"ece": 0.1}, {"method": "B", "data": "x"}),
        place({"accuracy": 0.8}, {"method": "B", "data": "y"}),
    ]
    table = comparison("accuracy", columns="data")(evidence(places))
    texts = [
        [cell.ours_text(column.quantity) for cell, column in zip(line.cells, table.columns, strict=True)]
        for line in table.lines
    ]
    assert texts == [["90.00", ""], ["not measured", "80.00"]]


def test_rows_that_were_not_run_are_left_out_unless_all_are() -> None:
    there, gone = place({"accuracy": 0.9}, {"method": "A"}), Place({"method": "B"}, 0)
    table = comparison("accuracy")(evidence([there, gone]))
    assert [line.labels for line in table.lines] == [("A",)]
    assert "1 of 2 runs are missing" in table.caption
    (line,) = comparison("accuracy")(evidence([gone])).lines
    assert (line.labels, line.cells[0].ours_text(table.columns[0].quantity)) == (("B",), "missing")


def test_deviations_are_explained_where_there_are_any() -> None:
    one, two = (place({"accuracy": 0.9}, {"method": "A"}, seed) for seed in (0, 1))
    for view in (comparison("accuracy"), bars("accuracy"), over_steps("accuracy")):
        assert "deviation" not in view(evidence([_listed(one)])).caption
        assert "deviation" in view(evidence([_listed(one), _listed(two)])).caption


def _listed(found):
    return replace(found, record=replace(found.record, metrics={"accuracy": [0.9, 0.8]}))


def test_a_label_that_would_break_a_table_does_not() -> None:
    found = evidence([place({"nll": 1.0}, {"method": "a | b"})], [Published({}, "nll", 2.0, 0.5)])
    assert "| a \\| b | 1.000 (paper 2.000 ± 0.500) | 1 |" in comparison("nll")(found).markdown()
