"""The warning about a task that was learned much less well than the first one."""

import warnings
from collections.abc import Sequence

from batchensemble.lifelong.data import Part
from batchensemble.lifelong.training import Epoch

MARGIN = 0.3  # skill by which a task may stay behind the first one


class StalledTask(UserWarning):
    """A task was learned much less well than the first one: its vectors may not be enough for it."""


def skill(accuracy: float, parts: Sequence[Part]) -> float:
    """Accuracy above chance: 0 is guessing, 1 is perfect.

    Examples:
        >>> import torch
        >>> skill(0.75, [Part.of("coins", (torch.zeros(2, 1), torch.tensor([0, 1])))])
        0.5
    """
    chance = sum(len(part) / part.classes for part in parts) / sum(map(len, parts))
    return max(0.0, (accuracy - chance) / (1 - chance))


def warn_if_stalled(last: Epoch, parts: Sequence[Part], first: float, rank: int) -> None:
    """Warn about tasks that stay far behind the first one, whose skill is `first`."""
    if skill(last.accuracy, parts) >= first - MARGIN:
        return
    names = ", ".join(part.name for part in parts)
    warnings.warn(
        f"task {names} ends at a training accuracy of {last.accuracy:.1%}, and the first task was learned much better: "
        f"vectors of rank {rank} may not be enough for it. Try a higher rank=, longer training, start='similar' or "
        "laterals=.",
        StalledTask,
        stacklevel=4,
    )
