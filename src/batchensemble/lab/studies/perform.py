"""Turns runs into records; what is in the store is not run again, by this process or by another."""

from dataclasses import replace

from batchensemble.disk import locked
from batchensemble.lab.records import Record, Run
from batchensemble.lab.store import Store
from batchensemble.lab.studies.study import Context, Study
from batchensemble.lab.training.devices import is_one_of_several, start_fabric


def perform(study: Study, run: Run, store: Store, context: Context) -> Record:
    """Returns a run's record, from the store or by performing it; with several devices, all processes call this.

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
