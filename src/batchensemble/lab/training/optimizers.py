"""The optimisers of the laboratory's networks."""

from collections.abc import Iterable
from typing import Any

import torch


def sgd(groups: Iterable[dict[str, Any]], device: torch.device) -> torch.optim.SGD:
    """Fused SGD with a Nesterov momentum of 0.9, its learning rates held in tensors.

    A CUDA graph bakes in the numbers it was captured with: a learning rate that is a number would never change.

    Args:
        groups: parameter groups with their own `lr` and `weight_decay`.
        device: where the parameters are.

    Examples:
        >>> layer = torch.nn.Linear(2, 1)
        >>> groups = [{"params": layer.parameters(), "lr": 0.1, "weight_decay": 1e-4}]
        >>> sgd(groups, torch.device("cpu")).param_groups[0]["lr"]
        tensor(0.1000)
    """
    own = _with_tensor_rates(groups, device)
    return torch.optim.SGD(own, lr=torch.tensor(0.0), momentum=0.9, nesterov=True, fused=True)


def adam(groups: Iterable[dict[str, Any]], device: torch.device) -> torch.optim.Adam:
    """Fused Adam with the Transformer's constants, its learning rates held in tensors.

    Args:
        groups: parameter groups with their own `lr`.
        device: where the parameters are.

    Examples:
        >>> groups = [{"params": torch.nn.Linear(2, 1).parameters(), "lr": 0.1}]
        >>> adam(groups, torch.device("cpu")).param_groups[0]["betas"]
        (0.9, 0.98)
    """
    own = _with_tensor_rates(groups, device)
    captured = device.type == "cuda"
    return torch.optim.Adam(own, lr=torch.tensor(0.0), betas=(0.9, 0.98), eps=1e-9, fused=True, capturable=captured)


def adamw(groups: Iterable[dict[str, Any]], device: torch.device) -> torch.optim.AdamW:
    """Fused AdamW with torch's constants, its learning rates held in tensors.

    Args:
        groups: parameter groups with their own `lr` and `weight_decay`.
        device: where the parameters are.

    Examples:
        >>> groups = [{"params": torch.nn.Linear(2, 1).parameters(), "lr": 0.1, "weight_decay": 1e-4}]
        >>> adamw(groups, torch.device("cpu")).param_groups[0]["weight_decay"]
        0.0001
    """
    own = _with_tensor_rates(groups, device)
    return torch.optim.AdamW(own, lr=torch.tensor(0.0), fused=True, capturable=device.type == "cuda")


def _with_tensor_rates(groups: Iterable[dict[str, Any]], device: torch.device) -> list[dict[str, Any]]:
    return [{**group, "lr": torch.tensor(float(group["lr"]), device=device)} for group in groups]
