"""Records that a view cannot read are named."""

from dataclasses import replace

import numpy as np
import pytest
from fake_records import FakeExperiment, evidence, place

from batchensemble.lab.report import Figure, NotMeasured, write_report
from batchensemble.lab.report.evaluate import evaluate
from batchensemble.lab.report.views import comparison, entropy_histograms, over_steps
from batchensemble.lab.store import CorruptRecord

METHODS = ("Single", "BatchEnsemble")


def found(metrics, wrong, arrays=None):
    """Two runs, the second with other metrics."""
    both = zip(METHODS, (metrics, {**metrics, **wrong}), strict=True)
    return evidence(place(values, {"method": method}, arrays=arrays) for method, values in both)


@pytest.mark.parametrize("wrong", ["x", 1.5, ["x", "y"], [{"a": 1}], [[1.0], [2.0, 3.0]], {"a": 1}, [1.0, 2.0, 3.0]])
def test_a_curve_of_another_kind(wrong):
    records = found({"loss": [2.0, 1.0], "steps": [1, 2]}, {"loss": wrong})
    with pytest.raises(CorruptRecord, match=rf"^{records.results[1].record.run.name}\.json: not to be read"):
        evaluate(over_steps("loss", x="steps"), records)


@pytest.mark.parametrize("wrong", ["x", {"a": 1}, ["x"]])
def test_epochs_of_another_kind(wrong):
    records = found({"accuracy": 0.5, "epochs": 3}, {"epochs": wrong})
    with pytest.raises(CorruptRecord, match=rf"^{records.results[1].record.run.name}\.json: epochs must be a number"):
        evaluate(comparison("accuracy"), records)


def test_what_goes_wrong_in_drawing(tmp_path):
    """The view reads numbers, and matplotlib refuses one of them."""

    def view(evidence):
        values = [result.record.metrics["height"] for result in evidence.results]
        return Figure("line", "Line", "", "", lambda canvas: [float(value) for value in values])

    records = found({"height": 1.0}, {"height": "tall"})
    wrong = FakeExperiment("wrong", records, view)
    with pytest.raises(CorruptRecord, match=records.results[1].record.run.name):
        write_report(wrong.records, [wrong], tmp_path)


@pytest.mark.parametrize("where", ["metrics", "arrays"])
def test_a_record_that_cannot_be_drawn_is_left_out_and_named(tmp_path, where):
    class Damaged(dict):
        def __getitem__(self, name):
            raise CorruptRecord("the .npz is damaged", records.results[1].record.run.name)

    arrays = {"entropy_known": np.zeros(9), "entropy_unknown": np.ones(9)}
    records = found({"auroc": 0.5}, {"auroc": "half"} if where == "metrics" else {}, arrays)
    if where == "arrays":
        broken = replace(records.results[1].record, arrays=Damaged(arrays))
        records = replace(records, places=(records.places[0], replace(records.places[1], record=broken)))
    wrong = FakeExperiment("wrong", records, comparison("auroc"), entropy_histograms())
    skipped = []
    files = write_report(wrong.records, [wrong], tmp_path, skipped=skipped.append)
    assert [error.names for error in skipped] == [(records.results[1].record.run.name,)]
    assert "1 of 2 runs are missing" in files[1].read_text()
    with pytest.raises(CorruptRecord):
        write_report(wrong.records, [wrong], tmp_path)


def test_records_that_do_not_go_together_stop_the_report(tmp_path):
    """None of them could be left out, since nobody knows which."""

    def view(evidence):
        raise ValueError("no two are alike") if len(evidence.results) > 1 else NotMeasured()

    wrong = FakeExperiment("wrong", found({}, {}), view)
    with pytest.raises(CorruptRecord, match="do not go together"):
        write_report(wrong.records, [wrong], tmp_path, skipped=lambda error: None)


def test_what_no_record_is_guilty_of_alone():
    def view(evidence):
        raise ValueError("no two are alike") if len(evidence.results) > 1 else NotMeasured()

    with pytest.raises(CorruptRecord, match=r"do not go together \(ValueError: no two are alike\)"):
        evaluate(view, found({}, {}))


def test_nothing_to_show_and_damaged_arrays_are_said_as_they_are():
    with pytest.raises(NotMeasured):
        evaluate(entropy_histograms(), found({}, {}))

    def view(evidence):
        raise CorruptRecord("the .npz is damaged")

    with pytest.raises(CorruptRecord, match=r"^the \.npz is damaged$"):
        evaluate(view, found({}, {}, {"entropy_known": np.zeros(3)}))
