"""Runs and records as values."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run, content_key, plain


@dataclass(frozen=True)
class Settings:
    data: str = "digits"
    widths: tuple[int, ...] = (8, 16)


def test_a_dataclass_and_its_json_are_the_same_run():
    from_class = Run("classification", Settings(), "smoke", seed=3)
    from_json = Run("classification", {"widths": [8, 16], "data": "digits"}, "smoke", seed=3)
    assert from_class == from_json
    assert from_class.key == from_json.key
    assert len({from_class, from_json}) == 1


@dataclass(frozen=True)
class Named:
    inner: Settings = Settings()

    def settings(self):
        return {"name": "a name", "inner": self.inner}


def test_settings_decide_what_is_stored_of_them_wherever_they_are():
    assert plain({"outer": Named()}) == {"outer": {"name": "a name", "inner": plain(Settings())}}
    assert Run("classification", Named(), "smoke") == Run("classification", Named().settings(), "smoke")


@pytest.mark.parametrize(
    "change",
    [{"study": "cost"}, {"settings": Settings(data="cifar10")}, {"scale": "small"}, {"seed": 1}],
)
def test_whatever_changes_the_result_changes_the_name(change):
    run = Run("classification", Settings(), "smoke", seed=0)
    assert replace(run, **change).name != run.name


def test_the_name_does_not_depend_on_the_process():
    # a constant: a changed recipe of hashing would orphan every committed record
    assert Run("counting", {"to": 3}, "smoke").name == "smoke/counting-b06b03e7602d"
    assert content_key({"b": 1.5, "a": [None, True]}) == content_key({"a": (None, True), "b": np.float64(1.5)})


def test_unknown_scale():
    with pytest.raises(ValueError, match="smoke, small, short, paper; got 'large'"):
        Run("classification", {}, "large")


def test_metrics_become_plain_json():
    metrics = {
        "accuracy": torch.tensor(0.5),
        "ece": np.float32(0.25),
        "by_class": np.ones(2),
        "nll": float("inf"),
    }
    record = Record(Run("classification", {}, "smoke"), metrics, Provenance.now())
    assert record.metrics == {"accuracy": 0.5, "ece": 0.25, "by_class": [1.0, 1.0], "nll": None}


def test_what_json_cannot_hold_is_named():
    with pytest.raises(TypeError, match="got function"):
        plain({"loss": lambda: 0})


def test_provenance_tells_where_a_number_was_made():
    made = Provenance.now(since=0.0)
    assert made.started.startswith("1970-01-01T00:00:00")
    assert made.seconds > 1e9
    assert made.versions["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert made.hardware[0].isdigit()
