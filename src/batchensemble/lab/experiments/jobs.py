"""What is to be run for some experiments: each run once, although experiments share runs."""

from collections.abc import Sequence

from batchensemble.lab.experiments.experiment import Case, Experiment
from batchensemble.lab.records import Run, Scale
from batchensemble.lab.studies.perform import Job


def jobs_of(
    experiments: Sequence[Experiment],
    scale: Scale,
    seeds: Sequence[int] | None = None,
    only: Sequence[str] = (),
) -> list[Job]:
    """The runs of the experiments, in order and each once, for rows that carry all the labels in `only`.

    Args:
        experiments: the experiments to run.
        scale: the scale of the runs.
        seeds: seeds instead of the experiments' own.
        only: labels, in any case, that a row must carry.

    Raises:
        ValueError: an experiment lacks the scale, or no row carries the labels.

    Examples:
        >>> from batchensemble.lab.experiments.digits import DIGITS
        >>> [job.words for job in jobs_of([DIGITS], "smoke", seeds=[0, 1], only=["single"])]
        ['Single, Digits, seed 0', 'Single, Digits, seed 1']
    """
    cases = [(case, experiment) for experiment in experiments for case in experiment.cases(scale, seeds)]
    wanted = {label.casefold() for label in only}
    jobs: dict[Run, Job] = {}
    for case, experiment in cases:
        if wanted <= {label.casefold() for label in case.labels.values()}:
            jobs.setdefault(case.run, Job(case.run, experiment.study, _words(case)))
    if not jobs:
        known = sorted({label for case, _ in cases for label in case.labels.values()})
        raise ValueError(f"no row is labelled {' and '.join(only)}; there are {'; '.join(known)}")
    return list(jobs.values())


def _words(case: Case) -> str:
    return ", ".join((*case.labels.values(), f"seed {case.run.seed}"))
