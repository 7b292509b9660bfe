"""Many runs: in order, each once, last those that another process is working on, and none stops the others."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store
from batchensemble.lab.studies.perform import BUSY, Failure, Job, in_words, perform_all, refused
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.progress import Progress, bars
from batchensemble.locks import Busy, locked
from batchensemble.optim import Diverged


class Bench(Progress):
    """A study that notes what it performs, the lines that announce it, and how far the work is."""

    def __init__(self, folder):
        self.store = Store(folder)
        self.jobs = [Job(Run("noting", {"name": name}, "smoke"), Study("noting", self.note), name) for name in "abc"]
        self.done, self.lines, self.shown = [], [], []

    def note(self, run, context):
        self.done.append(run.settings["name"])
        return Record(run, {"accuracy": 1.0}, Provenance.now())

    def perform(self, *, stop=False, **how):
        return perform_all(self.jobs, self.store, Context(progress=self, **how), self.lines.append, stop=stop)

    def fail(self, place, error):
        """Let one of the jobs fail."""

        def failing(run, context):
            raise error

        self.jobs[place] = replace(self.jobs[place], study=Study("noting", failing))

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
    assert bench.perform() == []
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
    with locked(bench.store.path(first)):
        assert bench.perform() == [Failure(bench.jobs[0], BUSY)]
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
    assert bench.perform() == []
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


@pytest.mark.parametrize(
    "error",
    [
        Diverged("the loss is nan"),
        ModuleNotFoundError("no gpytorch"),
        OSError("no such file"),
        ValueError("too few pictures"),
        torch.OutOfMemoryError("CUDA out of memory"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_run_that_fails_does_not_stop_the_others(bench, error):
    bench.fail(1, error)
    assert bench.perform() == [Failure(bench.jobs[1], str(error))]
    assert bench.done == ["a", "c"]
    assert bench.lines[2] == f"failed: {error}"
    assert bench.shown == [("runs", 3), "advance", "advance", "advance", "end"]


def test_an_error_of_the_software_is_raised_at_once(bench):
    bench.fail(1, AttributeError("no such attribute"))
    with pytest.raises(AttributeError):
        bench.perform()
    assert bench.done == ["a"]


def test_the_first_failure_may_be_raised(bench):
    bench.fail(1, ValueError("too few pictures"))
    with pytest.raises(ValueError, match="too few pictures"):
        bench.perform(stop=True)
    assert bench.done == ["a"]


def test_a_failed_run_holds_no_memory(bench):
    """An error kept for the end would keep everything that its functions hold, a whole network."""
    network = torch.nn.Linear(2, 2)
    gone = weakref.ref(network)

    def failing(run, context, held=[network]):  # noqa: B006
        model = held.pop()
        raise ValueError(f"{len(model.weight)} are too few")

    del network
    bench.jobs[0] = replace(bench.jobs[0], study=Study("noting", failing))
    assert bench.perform()[0].why == "2 are too few"
    gc.collect()
    assert gone() is None


def test_bars_of_a_failed_run_are_removed(bench):
    """The bar below the failed run's own is that of all runs, which advances."""

    def failing(run, context):
        context.progress.start("epochs", 10)
        raise ValueError("too few pictures")

    def look(run, context):
        bench.shown += [(task.description, task.completed) for task in context.progress._bars.tasks]
        return bench.note(run, context)

    bench.jobs = [replace(bench.jobs[0], study=Study("a", failing)), replace(bench.jobs[1], study=Study("b", look))]
    with bars(Console(quiet=True)) as progress:
        perform_all(bench.jobs, bench.store, Context(progress=progress), bench.lines.append)
    assert bench.shown == [("runs", 1)]


def test_what_cannot_be_run_is_known_before_the_first_run(bench, monkeypatch):
    timed, lacking = (
        Study("timing", bench.note, timed=True),
        Study("lacking", bench.note, extra="more", packages=("torch", "no_such_package")),
    )
    bench.jobs[1:] = [replace(bench.jobs[1], study=timed), replace(bench.jobs[2], study=lacking)]
    found = refused(bench.jobs, bench.store, Context(shared=True))
    assert [failure.job.words for failure in found] == ["b", "c"]
    assert found[0].why == "timing is a matter of time: it needs the machine for itself, and no --shared"
    assert found[1].why.startswith("lacking needs no_such_package: install batchensemble with its extra [more]")
    assert [failure.job.words for failure in refused(bench.jobs, bench.store, Context(devices=2))] == ["a", "b", "c"]
    bench.store.put(bench.note(bench.jobs[1].run, Context()))  # what is recorded needs nothing
    assert [failure.job.words for failure in refused(bench.jobs, bench.store, Context(shared=True))] == ["c"]
    assert perform_all([bench.jobs[1]], bench.store, Context(shared=True), bench.lines.append) == []


def test_failures_for_the_same_reason_are_one_line(bench):
    first, second, third = bench.jobs
    lines = in_words([Failure(first, "no data"), Failure(second, "the loss is nan"), Failure(third, "no data")])
    assert lines == [f"{first} and 1 more: no data", f"{second}: the loss is nan"]
