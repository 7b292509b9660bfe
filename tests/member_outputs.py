"""Outputs of several members, and the layouts in which networks give them."""

import torch
from torch import Tensor

M, N, C = 5, 7, 4
# (shape of one member's output without rows, class axis as the user may write it, the same axis from the end)
LAYOUTS = [((C,), -1, -1), ((C,), 1, -1), ((C, 3, 2), 1, -3), ((6, C), 2, -1), ((C, 6), -2, -2)]


def logits(*shape: int, members: int = M, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(members, N, *shape, generator=generator, dtype=torch.float64)).to(dtype)


def rule_name(value: object) -> str:
    """An id that is the same in every process: a function's address is not."""
    return getattr(value, "__name__", str(value))


def highest(outputs: Tensor) -> Tensor:
    return outputs.amax(0)
