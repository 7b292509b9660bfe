"""Many runs: in order, each once, and last those that another process is working on."""

import pytest

from batchensemble.disk import Busy, locked
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store
from batchensemble.lab.studies.perform import Job, perform_all
from batchensemble.lab.studies.study import Context, Study


class Bench:
    """A study that notes what it performs, the lines that announce it, and how far the work is."""

    def __init__(self, folder):
        self.store = Store(folder)
        self.jobs = [Job(Run("noting", {"name": name}, "smoke"), Study("noting", self.note), name) for name in "abc"]
        self.done, self.lines, self.shown = [], [], []

    def note(self, run, context):
        self.done.append(run.settings["name"])
        return Record(run, {"accuracy": 1.0}, Provenance.now())

    def perform(self, **how):
        perform_all(self.jobs, self.store, Context(progress=self, **how), self.lines.append)

    def start(self, name, total, done=0):
        self.shown.append((name, total))

    def advance(self, note=""):
        self.shown.append("advance")

    def end(self):
        self.shown.append("end")


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_every_run_is_announced_performed_and_counted(bench):
    bench.perform()
    assert bench.done == ["a", "b", "c"]
    assert bench.lines[2] == f"run 3 of 3: c (noting-{bench.jobs[2].run.key})"
    assert bench.shown == [("runs", 3), "advance", "advance", "advance", "end"]


def test_what_is_recorded_is_counted_but_neither_announced_nor_performed(bench):
    bench.store.put(bench.note(bench.jobs[0].run, Context()))
    bench.perform()
    assert bench.done == ["a", "b", "c"]  # a once, by hand
    assert [line[:12] for line in bench.lines] == ["run 2 of 3: ", "run 3 of 3: "]
    assert bench.shown.count("advance") == 3


def test_what_another_process_works_on_is_left_to_it(bench):
    first = bench.jobs[0].run
    with locked(bench.store.path(first)), pytest.raises(Busy, match=f"working on {first.name}: add --wait"):
        bench.perform()
    assert bench.done == ["b", "c"]
    assert bench.shown[-1] == "end"


def test_what_another_process_has_finished_meanwhile_is_taken_from_the_store(bench, monkeypatch):
    """The other process holds the first run until this one has performed the last."""
    first = bench.jobs[0].run
    other = locked(bench.store.path(first))
    other.__enter__()
    note = bench.note

    def finish(run, context):
        if run == bench.jobs[-1].run:
            bench.store.put(note(first, context))
            other.__exit__(None, None, None)
        return note(run, context)

    bench.jobs = [Job(job.run, Study("noting", finish), job.words) for job in bench.jobs]
    bench.perform()
    assert bench.done == ["b", "a", "c"]
    assert bench.shown.count("advance") == 3


def test_processes_that_train_together_stop_where_another_holds_a_run(bench, monkeypatch):
    """They must keep to one order, which one of them alone cannot leave."""
    monkeypatch.setattr("batchensemble.lab.studies.perform.is_one_of_several", lambda *_: True)

    def busy(*_):
        raise Busy("another process is working on it")

    monkeypatch.setattr("batchensemble.lab.studies.perform.perform", busy)
    with pytest.raises(Busy, match="another process is working on it"):
        bench.perform()
    assert len(bench.lines) == 1
