"""Turns runs into records; what is in the store is not run again, by this process or by another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.devices import is_one_of_several, start_fabric
from batchensemble.locks import Busy, locked
from batchensemble.optim import Diverged

FAILURES = (Busy, Diverged, ImportError, OSError, ValueError, torch.OutOfMemoryError)
"""What a run may fail for without an error in the software."""
BUSY = "another process is working on it: add --wait to wait for it"


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


@dataclass(frozen=True)
class Failure:
    """A job that was not performed, and why, in words."""

    job: Job
    why: str


def in_words(failures: Sequence[Failure]) -> list[str]:
    """A line for every reason: the first job that failed for it, how many more did, and the reason."""
    whose: dict[str, list[Job]] = {}
    for failure in failures:
        whose.setdefault(failure.why, []).append(failure.job)
    more = {why: f" and {len(jobs) - 1} more" if len(jobs) > 1 else "" for why, jobs in whose.items()}
    return [f"{jobs[0]}{more[why]}: {why}" for why, jobs in whose.items()]


def refused(jobs: Sequence[Job], store: Store, context: Context) -> list[Failure]:
    """The jobs that are not in the store and cannot be performed in this context, before the first one begins.

    Args:
        jobs: what is to be performed.
        store: where records are.
        context: where to work.
    """
    found = []
    for job in jobs:
        try:
            job.study.check(context)
        except (ImportError, ValueError) as error:
            found += [] if store.has(job.run) else [Failure(job, str(error))]
    return found


def perform_all(
    jobs: Sequence[Job], store: Store, context: Context, announce: Callable[[str], None], *, stop: bool = False
) -> list[Failure]:
    """Perform every job, in order; those that another process is working on come last, so that both share the work.

    Args:
        jobs: what to perform.
        store: where records are, and where new ones go.
        context: where to work; its `progress` advances by one for every job.
        announce: gets a line before each job that is not in the store yet, and one for each that fails.
        stop: whether to raise the first error instead of going on with the other jobs. Processes that train together
            always do: one of them alone cannot leave their order.

    Returns:
        The jobs that failed. If another process is working on one, and the context does not say to wait, that counts.
    """
    stop = stop or is_one_of_several(context.devices)
    context.progress.start("runs", len(jobs))
    why: dict[Job, str] = {}
    for number, job in enumerate(jobs, start=1):
        if not store.has(job.run):
            announce(f"run {number} of {len(jobs)}: {job}")
        why[job] = _tried(job, store, context if stop else replace(context, wait=False), stop)
        if why[job] not in ("", BUSY):
            announce(f"failed: {why[job]}")
    for job in [job for job in jobs if why[job] == BUSY]:
        why[job] = _tried(job, store, context, stop)
    context.progress.end()
    return [Failure(job, words) for job, words in why.items() if words]


def _tried(job: Job, store: Store, context: Context, stop: bool) -> str:
    """Perform a job, and return why it failed; nothing if it did not. The error is not kept: it would hold tensors."""
    try:
        with context.progress.ended():
            perform(job.study, job.run, store, context)
    except FAILURES as error:
        if stop:
            raise
        if isinstance(error, Busy):
            return BUSY
        words = str(error) or type(error).__name__
    else:
        words = ""
    context.progress.advance()
    return words


def perform(study: Study, run: Run, store: Store, context: Context) -> Record:
    """A run's record, from the store or by performing it; with several devices, all processes call this.

    Raises:
        Busy: another process is working on this run, and the context does not say to wait.
        ValueError: no run of this kind can be performed in this context.
        ModuleNotFoundError: a package is missing.
    """
    if not store.has(run):
        study.check(context)
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
