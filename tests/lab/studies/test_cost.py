"""The cost study: parameters are exact, relative numbers are relative."""

from functools import partial

import pytest

from batchensemble.lab.methods.ensembles import BatchEnsemble
from batchensemble.lab.models import resnet
from batchensemble.lab.records import Run
from batchensemble.lab.studies.cost import COST, KINDS, Classify, Settings, compare
from batchensemble.lab.studies.study import Context
from batchensemble.lab.training.devices import start_fabric


def test_cost_of_every_kind_and_size():
    settings = Settings(members=(1, 3), batch=2, repeats=1, depth=8, width=1, precision="fp32")
    found = COST.run(Run("cost", settings, "smoke"), Context(device="cpu")).metrics
    rows = {(row["kind"], row["members"]): row for row in found["cost"]}
    assert set(rows) == {(kind, members) for kind in KINDS for members in (1, 3)}
    single = found["single"]["parameters"]
    assert rows["Naive, at once", 3]["parameters"] == rows["Naive, one by one", 3]["parameters"] == 3 * single
    ours = BatchEnsemble(3).build(partial(resnet, 8, 1, 10), 0)
    assert rows["BatchEnsemble", 3]["parameters"] == sum(p.numel() for p in ours.parameters())
    for row in rows.values():
        assert row["relative_parameters"] == pytest.approx(row["parameters"] / single)
        assert row["relative_seconds"] > 0


def test_what_is_compared_takes_turns(monkeypatch):
    calls = []
    monkeypatch.setattr(Classify, "__call__", lambda work, compiled: partial(calls.append, type(work.method).__name__))
    settings = Settings(repeats=3, precision="fp32")
    assert len(compare(BatchEnsemble(2), settings, start_fabric("cpu"))) == 2
    assert calls[-10:] == ["BatchEnsemble", "Single"] * 5  # two rounds or more to get warm


def test_times_need_the_machine_for_themselves():
    with pytest.raises(ValueError, match="needs the machine for itself"):
        COST.check(Context(device="cpu", shared=True))
