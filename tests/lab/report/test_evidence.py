"""Numbers over seeds, places, and what the paper says of them."""

import statistics

import pytest
from fake_records import evidence, place

from batchensemble.lab.records import Published
from batchensemble.lab.report.evidence import Evidence, Place, Summary, number_of


def test_the_summary_is_mean_and_sample_deviation() -> None:
    numbers = [0.3, 0.1, 0.45, 0.2]
    summary = Summary.of(numbers)
    assert summary.mean == pytest.approx(statistics.mean(numbers), abs=1e-15)
    assert summary.spread == pytest.approx(statistics.stdev(numbers), abs=1e-15)
    assert summary.count == 4


def test_labels_keep_the_order_of_the_grid_and_missing_runs_keep_their_place(accuracy_evidence) -> None:
    assert accuracy_evidence.labels("method") == ("Single", "MC-dropout", "BatchEnsemble", "Naive ensemble")
    assert accuracy_evidence.where(method="Naive ensemble", data="CIFAR-100").results == ()
    assert len(accuracy_evidence.missing) == 5


def test_numbers_of_different_kinds_are_never_mixed(accuracy_evidence) -> None:
    with pytest.raises(ValueError, match=r"several kinds of runs of an-experiment; say also .*data"):
        accuracy_evidence.summary("accuracy", method="Single")


def test_a_missing_seed_and_a_number_that_was_not_finite_do_not_count() -> None:
    found = evidence(
        [place({"nll": 1.0}, {"m": "a"}), place({"nll": float("nan")}, {"m": "a"}, 1), Place({"m": "a"}, 2)]
    )
    assert found.summary("nll", m="a") == Summary(1.0, None, 1)
    assert found.summary("nll", m="b") is None


def test_a_list_counts_as_its_mean() -> None:
    record = place({"member_accuracy": [0.5, None, 0.7], "shift": []}, {}).record
    assert number_of(record, "member_accuracy") == pytest.approx(0.6)
    assert number_of(record, "shift") is None


def test_means_over_corruptions_come_from_their_rows_where_they_were_not_recorded() -> None:
    rows = [(0, 0.95, 0.1), (1, 0.8, 0.4), (5, 0.4, None)]
    shift = [
        {"corruption": "fog" if severity else "none", "severity": severity, "accuracy": accuracy, "nll": nll}
        for severity, accuracy, nll in rows
    ]
    record = place({"shift": shift, "corrupted_nll": 9.0}, {}).record
    assert number_of(record, "corrupted_accuracy") == pytest.approx(0.6)  # without the clean images
    assert number_of(record, "corrupted_nll") == 9.0  # as it was recorded
    assert number_of(record, "corrupted_ece") is None
    assert number_of(place({"accuracy": 0.9}, {}).record, "corrupted_accuracy") is None


def test_the_papers_number_stands_only_beside_runs_on_the_same_data() -> None:
    number = Published({"method": "Single", "data": "CIFAR-10"}, "accuracy", 0.9531)

    def measured_on(data: str) -> Evidence:
        return evidence([place({"accuracy": 0.9}, {"method": "Single", "data": data})], [number])

    assert measured_on("CIFAR-10").paper("accuracy", method="Single") == (number,)
    assert measured_on("Procedural-10").paper("accuracy", method="Single") == ()
    assert measured_on("CIFAR-10").paper("ece", method="Single") == ()


def test_where_the_paper_contradicts_itself_both_numbers_are_there() -> None:
    numbers = [Published({"method": "Single"}, "accuracy", value) for value in (0.9531, 0.9522)]
    found = evidence([place({"accuracy": 0.95}, {"method": "Single"})], numbers)
    assert [number.value for number in found.paper("accuracy", method="Single")] == [0.9531, 0.9522]
