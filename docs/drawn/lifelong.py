"""Lifelong learning."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import mean
from typing import Any

import torch

from batchensemble.lab.experiments.lifelong_cifar100 import COMPUTE, KEPT
from batchensemble.lab.experiments.lifelong_methods import (
    BN_TUNED,
    FROM_FIRST,
    FROZEN_NORM,
    LATERALS,
    OWN_NORM,
    OWN_NORM_4,
    OWN_NORM_16,
    RANK_4,
    SEPARATE,
)
from batchensemble.lab.report.quantity import Quantity
from batchensemble.lab.report.views import comparison, relative_to
from drawn.records import body, evidence_of, lead, markdown, only, recorded, where

OPERATIONS = Quantity("relative_operations", "operations, vanilla = 1", digits=2)
MEMORY = Quantity("relative_parameters", "parameters, vanilla = 1", digits=2)
PEAK = Quantity("peak_memory", "memory while training", "GiB", 2.0**-30, 2)
STORED = replace(KEPT, name="stored numbers")
MANY = (1, 10, 100, 1000)
GAINS = {
    "own norms over own statistics, rank 1": (OWN_NORM, FROM_FIRST),
    "own norms over own statistics, rank 4": (OWN_NORM_4, RANK_4),
    "own norms over frozen ones, rank 1": (OWN_NORM, FROZEN_NORM),
    "rank 4 over rank 1, own norms": (OWN_NORM_4, OWN_NORM),
    "rank 16 over rank 4, own norms": (OWN_NORM_16, OWN_NORM_4),
    "BN-tuned over rank 1 with own norms": (BN_TUNED, OWN_NORM),
    "rank 4 with own norms over BN-tuned": (OWN_NORM_4, BN_TUNED),
    "separate networks over rank 16 with own norms": (SEPARATE, OWN_NORM_16),
}
"""Pairs of methods that are compared task by task."""


def lifelong_cifar100() -> str:
    """Accuracy, forgetting and costs on Split-CIFAR100; seconds are left out, since trainings shared the GPU."""
    evidence = evidence_of("lifelong-cifar100", "small")
    view = comparison("average_accuracy", "train_accuracy", "forgetting", OPERATIONS, STORED, PEAK)
    table = body(evidence, relative_to(view, ["operations"], to="Vanilla"))
    ours, theirs = (only(evidence, method=method) for method in ("BatchEnsemble", "PNN"))
    costs = {"operations": "operations", "numbers_kept": "stored numbers", "peak_memory": "memory while training"}
    ratios = (theirs.metrics[metric] / ours.metrics[metric] for metric in costs)
    over = ", ".join(f"{ratio:.1f} times the {words}" for ratio, words in zip(ratios, costs.values(), strict=True))
    first, *rest = (100 * accuracy for accuracy in ours.metrics["task_accuracy"])
    tasks = f"BatchEnsemble's first task: {first:.1f} %; the mean of the {len(rest)} others: {mean(rest):.1f} %."
    return f"{table}\n\nPNN has {over} of BatchEnsemble. {tasks}"


def lifelong_options() -> str:
    """The learner's options on Split-CIFAR100; seconds are left out here, too."""
    evidence = recorded("lifelong-options", "small")
    table = body(evidence, comparison("average_accuracy", "train_accuracy", COMPUTE, STORED))
    for name in (FROZEN_NORM, OWN_NORM, RANK_4, LATERALS):  # all of them, at every rank, begin so
        table = table.replace(name, name.replace(",", ", from the first task,"))
    return table


def lifelong_gains() -> str:
    """What an option gains on the tasks after the first, pair by pair."""
    accuracies = {
        result.labels["method"]: 100 * torch.tensor(result.record.metrics["task_accuracy"][1:], dtype=torch.float64)
        for experiment in ("lifelong-cifar100", "lifelong-options")
        for result in recorded(experiment, "small").results
    }
    rows = [(name, lead(accuracies[ours] - accuracies[theirs], 1)) for name, (ours, theirs) in GAINS.items()]
    return markdown(("gain on the nineteen later tasks", "accuracy (points)"), rows)


def lifelong_cost() -> str:
    """Ten tasks on LeNet relative to fine-tuning."""
    view = comparison(OPERATIONS, MEMORY, "average_accuracy", "forgetting")
    return body(evidence_of("lifelong-cost", "small"), relative_to(view, ["operations", "parameters"], to="Vanilla"))


def lifelong_growth() -> str:
    """What is kept, and what a task takes, after so many tasks."""
    evidence = evidence_of("lifelong-growth", "small")
    methods = evidence.labels("method")
    growths = [only(evidence, method=method).metrics for method in methods]
    heads = (f"{what}, {method}" for what in ("stored", "operations") for method in methods)
    rows = []
    for tasks in MANY:
        kept = (_grown(growth, "growth_numbers_kept", tasks, "{:,.0f}", 1e-3) for growth in growths)
        work = (_grown(growth, "growth_operations", tasks, "{:.2f}", 1e-9) for growth in growths)
        rows.append((str(tasks), *kept, *work))
    what = "Stored: all numbers after so many tasks, in thousands; operations: of a task around there, in billions."
    return f"{markdown(('tasks', *heads), rows)}\n\n{what} {where(evidence)}"


def _grown(growth: Mapping[str, Any], metric: str, tasks: int, form: str, factor: float) -> str:
    """A metric after so many tasks, nothing where it did not come so far."""
    found = dict(zip(growth["growth_tasks"], growth[metric], strict=True))
    return form.format(factor * found[tasks]) if tasks in found else "-"
