"""Which earlier task's features suit a new task best."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from batchensemble.lifelong.data import Part
from batchensemble.lifelong.network import Tasks
from batchensemble.seeds import seeded

ROWS = 512  # rows of the new task that are used, at most


@torch.no_grad()
def similarities(tasks: Tasks, part: Part, seed: int, augment: Callable[[Tensor], Tensor] | None) -> dict[str, float]:
    """How well each known task's features tell a new task's classes apart, by name; see `class_mean_accuracy`.

    Args:
        tasks: the tasks that are known.
        part: the new one.
        seed: seed for the choice of rows, 512 at most, and for `augment`.
        augment: what training does to inputs.
    """
    rows = torch.randperm(len(part), generator=torch.Generator().manual_seed(seed), device="cpu")[:ROWS]
    x, labels = (tensor.to(tasks.ensemble.device) for tensor in part.rows(rows.tolist()))
    if augment is not None:
        with seeded(seed, x.device):
            x = augment(x)
    return {name: class_mean_accuracy(tasks.features(x, name), labels) for name in tasks.names}


def class_mean_accuracy(features: Tensor, labels: Tensor) -> float:
    """How well features tell classes apart: accuracy of the nearest class mean (cosine), on rows not in the means.

    Even rows make the means, odd ones are classified.

    Args:
        features: `(N, ...)`.
        labels: `(N,)`.

    Examples:
        >>> class_mean_accuracy(torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]]), torch.tensor([0, 0, 1, 1]))
        1.0
    """
    rows = F.normalize(features.flatten(1).float(), dim=1)
    known, asked, answers = rows[::2], rows[1::2], labels[1::2]
    if not len(asked):
        return 0.0
    sums = rows.new_zeros(int(labels.max()) + 1, rows.shape[1]).index_add(0, labels[::2], known)
    scores = asked @ F.normalize(sums, dim=1).T
    return float((scores.argmax(1) == answers).float().mean())
