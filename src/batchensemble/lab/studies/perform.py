"""Turns runs into records; what is in the store is not run again, by this process or by another."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from batchensemble.disk import Busy, locked
from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.devices import is_one_of_several, start_fabric


@dataclass(frozen=True)
class Job:
    """A run to perform.

    Args:
        run: what is asked.
        study: the study that performs it.
        words: what it is, for people: `BatchEnsemble, Digits, seed 0`.
    """

    run: Run
    study: Study
    words: str

    def __str__(self) -> str:
        return f"{self.words} ({self.run.study}-{self.run.key})"


def perform_all(jobs: Sequence[Job], store: Store, context: Context, announce: Callable[[str], None]) -> None:
    """Perform every job, in order; those that another process is working on come last, so that both share the work.

    Args:
        jobs: what to perform.
        store: where records are, and where new ones go.
        context: where to work; its `progress` advances by one for every job.
        announce: gets a line before each job that is not in the store yet.

    Raises:
        Busy: another process is working on some of the jobs, and the context does not say to wait.
        ValueError: there are several devices, which cannot work together on one of the jobs.
    """
    context.progress.start("runs", len(jobs))
    busy = []
    for number, job in enumerate(jobs, start=1):
        if not store.has(job.run):
            announce(f"run {number} of {len(jobs)}: {job}")
        if not _performed(job, store, context):
            busy.append(job)
    for job in busy:
        with suppress(Busy):
            perform(job.study, job.run, store, context)
            context.progress.advance()
    context.progress.end()
    if left := [job.run.name for job in busy if not store.has(job.run)]:
        raise Busy(f"another process is working on {', '.join(left)}: add --wait to wait for it")


def _performed(job: Job, store: Store, context: Context) -> bool:
    """Perform a job unless another process is working on it; processes that train together keep to one order."""
    together = is_one_of_several(context.devices)
    try:
        perform(job.study, job.run, store, context if together else replace(context, wait=False))
    except Busy:
        if together:
            raise
        return False
    context.progress.advance()
    return True


def perform(study: Study, run: Run, store: Store, context: Context) -> Record:
    """Return a run's record, from the store or by performing it; with several devices, all processes call this.

    Raises:
        Busy: another process is working on this run, and the context does not say to wait.
        ValueError: there are several devices, which cannot work together on this kind of run.
    """
    study.check_devices(context.devices)
    context = replace(context, store=store)
    if not is_one_of_several(context.devices):
        return store.obtain(run, lambda: _done(study, run, context), wait=context.wait)
    fabric = start_fabric(context.device, context.devices)
    if not fabric.broadcast(store.has(run)):
        if fabric.is_global_zero:
            with locked(store.path(run), wait=context.wait):
                store.put(_done(study, run, context))
        else:
            study.run(run, context)
    fabric.barrier()
    return store.get(run)


def _done(study: Study, run: Run, context: Context) -> Record:
    record = study.run(run, context)
    return record.untimed() if context.shared else record
