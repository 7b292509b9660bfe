"""The folder of records: whole files, one process at a time, damage is named."""

import json
import time

import numpy as np
import pytest
from processes import holder

from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import FORMAT, CorruptRecord, NewerRecord, Store, UnreadableRecord
from batchensemble.locks import Busy

RUN = Run("counting", {"to": 3}, "smoke")


def record(**arrays):
    return Record(RUN, {"sum": 6}, Provenance.now(), arrays)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def test_put_and_get(store):
    logits = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    written = record(logits=logits, labels=np.arange(5, dtype=np.int64))
    store.put(written)
    back = store.get(RUN)
    assert back == written
    assert list(store.all()) == [written]
    assert back.arrays["logits"].dtype == np.float16
    np.testing.assert_array_equal(back.arrays["logits"], logits.astype(np.float16))
    np.testing.assert_array_equal(back.arrays["labels"], np.arange(5))
    with pytest.raises(KeyError, match="no array 'images', only logits, labels"):
        back.arrays["images"]


def test_what_is_there_is_not_run_again(store):
    calls = []

    def work():
        calls.append(1)
        return record()

    assert store.obtain(RUN, work) == store.obtain(RUN, work)
    assert len(calls) == 1


def test_a_run_that_was_not_made(store):
    assert not store.has(RUN)
    assert list(store.all()) == []
    with pytest.raises(KeyError, match="run it first"):
        store.get(RUN)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"run": {}}'])
def test_a_damaged_record_is_named(store, damage):
    store.put(record())
    store.path(RUN).write_text(damage)
    with pytest.raises(CorruptRecord, match=store.path(RUN).name):
        store.get(RUN)
    with pytest.raises(CorruptRecord, match="delete it and run it again"):
        list(store.all())


def test_settings_edited_by_hand_are_noticed(store):
    store.put(record())
    content = json.loads(store.path(RUN).read_text())
    content["run"]["settings"]["to"] = 4
    store.path(RUN).write_text(json.dumps(content))
    with pytest.raises(CorruptRecord, match="changed after it was written"):
        store.get(RUN)


def test_what_lies_beside_the_scales_is_no_record(store):
    store.put(record())
    (store.folder / "speed").mkdir()
    (store.folder / "speed" / "translation-h200.json").write_text("{}")
    assert [one.run for one in store.all()] == [RUN]


def test_a_record_of_a_newer_version_may_say_more(store):
    store.put(record())
    content = json.loads(store.path(RUN).read_text())
    content["provenance"]["weather"] = "fine"
    store.path(RUN).write_text(json.dumps(content))
    assert store.get(RUN).metrics == {"sum": 6}


@pytest.mark.parametrize(
    ("part", "field", "said"),
    [
        (None, "format", f"format {FORMAT + 1}, here {FORMAT}"),
        ("run", "replica", "unknown here: replica"),
        ("arrays", "replica", "unknown here: replica"),
    ],
)
def test_what_only_a_newer_version_can_have_written_is_not_called_damaged(store, part, field, said):
    store.put(record(logits=np.ones(3)))
    content = json.loads(store.path(RUN).read_text())
    (content[part] if part else content)[field] = FORMAT + 1
    store.path(RUN).write_text(json.dumps(content))
    with pytest.raises(NewerRecord) as raised:
        store.get(RUN)
    assert str(raised.value) == (
        f"{store.path(RUN)} was written by a newer version of batchensemble ({said}): update this one to read it"
    )


def test_records_say_their_format_and_may_lack_it(store):
    store.put(record())
    content = json.loads(store.path(RUN).read_text())
    assert content.pop("format") == FORMAT
    store.path(RUN).write_text(json.dumps(content))
    assert store.get(RUN).metrics == {"sum": 6}


def test_records_that_cannot_be_read_are_left_out_by_name(store):
    damaged, newer, folder = (Run("counting", {"to": to}, "smoke") for to in (4, 5, 6))
    for run in (RUN, damaged, newer):
        store.put(Record(run, {"sum": 6}, Provenance.now()))
    store.path(damaged).write_text("{")
    store.path(newer).write_text('{"format": 99}')
    store.path(folder).mkdir()
    for some in (store.all, lambda *how: store.some([RUN, damaged, newer, folder], *how)):
        skipped = []
        assert [one.run for one in some(skipped.append)] == [RUN]
        names = {error.names: type(error) for error in skipped}
        assert names == {
            (damaged.name,): CorruptRecord, (newer.name,): NewerRecord, (folder.name,): UnreadableRecord
        }  # fmt: skip
        with pytest.raises(UnreadableRecord):
            list(some())


def test_some_records_are_those_of_runs_that_have_one(store):
    store.put(record())
    assert [one.run for one in store.some([Run("counting", {"to": 4}, "smoke"), RUN])] == [RUN]


def test_metrics_that_are_no_mapping(store):
    store.put(record())
    content = json.loads(store.path(RUN).read_text())
    store.path(RUN).write_text(json.dumps(content | {"metrics": [1, 2]}))
    with pytest.raises(CorruptRecord, match="is not a record"):
        store.get(RUN)


@pytest.mark.parametrize("damage", ["truncate", "delete"])
def test_damaged_arrays_are_named(store, damage):
    store.put(record(logits=np.ones(100)))
    file = store.path(RUN).with_suffix(".npz")
    file.write_bytes(file.read_bytes()[:50]) if damage == "truncate" else file.unlink()
    with pytest.raises(CorruptRecord, match=r"\.npz is missing or damaged") as raised:
        store.get(RUN).arrays["logits"]
    assert raised.value.names == (RUN.name,)


def test_two_processes_never_do_the_same_run(store):
    with holder(store.path(RUN)) as process:
        with pytest.raises(Busy, match=r"another process is working on .*counting"):
            store.obtain(RUN, record)
        process.kill()  # SIGKILL: the lock goes with the process
    began = time.monotonic()
    assert store.obtain(RUN, record, wait=True).metrics == {"sum": 6}
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("wrong", [{"seconds": "long"}, {"started": 5}, {"hardware": None}, {"versions": []}])
def test_a_provenance_of_another_kind_is_no_record(store, wrong):
    store.put(record())
    content = json.loads(store.path(RUN).read_text())
    content["provenance"] |= wrong
    store.path(RUN).write_text(json.dumps(content))
    with pytest.raises(CorruptRecord, match=f"{next(iter(wrong))} of the provenance"):
        store.get(RUN)
