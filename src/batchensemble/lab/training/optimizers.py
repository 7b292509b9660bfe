"""The optimiser of the paper's networks."""

from collections.abc import Iterable
from typing import Any

import torch


def sgd(groups: Iterable[dict[str, Any]], device: torch.device, momentum: float = 0.9) -> torch.optim.SGD:
    """Stochastic gradient descent with Nesterov's momentum, in one kernel, with learning rates as tensors.

    A captured CUDA graph repeats what it saw: a learning rate that is a number would never change in it.

    Args:
        groups: parameter groups with their own `lr` and `weight_decay`.
        device: where the parameters are.
        momentum: of the moving gradient.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> groups = [{"params": layer.parameters(), "lr": 0.1, "weight_decay": 1e-4}]
        >>> sgd(groups, torch.device("cpu")).param_groups[0]["lr"]
        tensor(0.1000)
    """
    own = [{**group, "lr": torch.tensor(float(group["lr"]), device=device)} for group in groups]
    return torch.optim.SGD(own, lr=torch.tensor(0.0), momentum=momentum, nesterov=True, fused=True)
