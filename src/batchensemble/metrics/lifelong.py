"""What a learner knows after each task: accuracy, forgetting and transfer, from one matrix of accuracies.

`matrix[i, j]` is the accuracy on task j after learning task i, `(tasks, tasks)`, as shares or as percent.
Entries above the diagonal (tasks not learned yet) may be NaN, unless `forward_transfer` reads them.
"""

import torch
from torch import Tensor

from batchensemble.metrics.checks import checked_values


def average_accuracy(matrix: Tensor) -> float:
    """Mean accuracy over all tasks after the last one.

    Examples:
        >>> average_accuracy(torch.tensor([[0.9, 0.1], [0.7, 0.8]], dtype=torch.float64))
        0.75
    """
    return _checked(matrix)[-1].mean().item()


def seen_accuracy(matrix: Tensor) -> Tensor:
    """Mean accuracy over the tasks seen so far, after each task `(tasks,)`.

    Examples:
        >>> seen_accuracy(torch.tensor([[0.9, 0.1], [0.7, 0.8]], dtype=torch.float64)).tolist()
        [0.9, 0.75]
    """
    matrix = _checked(matrix)
    return torch.stack([row[: i + 1].mean() for i, row in enumerate(matrix)])


def forgetting(matrix: Tensor, from_best: bool = False) -> float:
    """Accuracy lost since a task was learned, `mean_(j < T-1) (a[j, j] - a[T-1, j])`; 0 for a single task.

    Args:
        matrix: `(tasks, tasks)`.
        from_best: start from the best accuracy the task had between being learned and the last task, instead
            of the one right after learning it (Chaudhry et al., 2018).

    Examples:
        >>> matrix = torch.tensor([[0.50, 0.0, 0.0], [0.75, 0.5, 0.0], [0.25, 0.5, 0.5]])
        >>> forgetting(matrix), forgetting(matrix, from_best=True)
        (0.125, 0.25)
    """
    matrix = _checked(matrix)
    if len(matrix) == 1:
        return 0.0
    learned = [column[j:-1] for j, column in enumerate(matrix.T[:-1])]
    before = torch.stack([column.max() if from_best else column[0] for column in learned])
    return (before - matrix[-1, :-1]).mean().item()


def backward_transfer(matrix: Tensor) -> float:
    """What later tasks did to earlier ones, `mean_(j < T-1) (a[T-1, j] - a[j, j])`: minus the forgetting.

    Examples:
        >>> backward_transfer(torch.tensor([[0.75, 0.0], [0.5, 1.0]]))
        -0.25
    """
    # Subtracted, not negated: no forgetting is 0, not minus 0.
    return 0.0 - forgetting(matrix)


def forward_transfer(matrix: Tensor, baseline: Tensor) -> float:
    """What earlier tasks did for later ones, `mean_(j > 0) (a[j-1, j] - baseline[j])`; 0 for a single task.

    Args:
        matrix: `(tasks, tasks)`, finite on the diagonal above the main one as well.
        baseline: accuracy on each task of a network that learned nothing `(tasks,)`.

    Examples:
        >>> forward_transfer(torch.tensor([[0.75, 0.5], [0.5, 1.0]]), baseline=torch.tensor([0.25, 0.25]))
        0.25
    """
    matrix = _checked(matrix)
    baseline = checked_values(baseline, "baseline accuracies", ("tasks",))
    if len(baseline) != len(matrix):
        raise ValueError(f"expected a baseline for each of {len(matrix)} tasks, got {len(baseline)}")
    if len(matrix) == 1:
        return 0.0
    before = checked_values(matrix.diagonal(1), "accuracies on the task to come", ("tasks",))
    return (before - baseline[1:]).mean().item()


def _checked(matrix: Tensor) -> Tensor:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(f"expected an accuracy matrix of shape (tasks, tasks), got {tuple(matrix.shape)}")
    matrix = matrix.detach().to(torch.float64)
    checked_values(matrix.tril(), "accuracies on tasks already learned", ("tasks", "tasks"))
    return matrix
