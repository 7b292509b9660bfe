"""Members' weights, folded once while nothing changes them: a decoder calls its layers again for every token."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from batchensemble.nn.member import MemberModule
from batchensemble.nn.stacked_linear import stacked_linear

MOST_BYTES = 2**31  # for all folded weights together; a network that needs more keeps scaling activations


class Folded(NamedTuple):
    """`weight (members, out, in)` is `W ∘ s_i r_iᵀ`, inputs first in memory; `bias (members, out)`."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """`(members * n, ..., in)`, member-major, to `(members * n, ..., out)`: one batched product."""
        return stacked_linear(x.unflatten(0, (len(self.weight), -1)), self.weight, self.bias).flatten(0, 1)


class _Local(threading.local):
    def __init__(self) -> None:
        self.folded: Mapping[nn.Module, Folded] = {}


_local = _Local()


@contextmanager
def folded_once(net: nn.Module) -> Iterator[None]:
    """Let this thread's passes without gradients use weights that were folded on entry, if these fit."""
    ours: list[Any] = [module for module in net.modules() if isinstance(module, MemberModule)]
    layers = [module for module in ours if getattr(module, "features_at", None) == -1]
    size = sum(layer.members * layer.weight.numel() * layer.weight.element_size() for layer in layers)
    before = _local.folded
    with torch.no_grad():
        _local.folded = {layer: layer.folded() for layer in layers} if size <= MOST_BYTES else {}
    try:
        yield
    finally:
        _local.folded = before


def folded_weights(layer: nn.Module) -> Folded | None:
    """A layer's folded weights in this thread; `None` if there are none, or if gradients are enabled."""
    return None if not _local.folded or torch.is_grad_enabled() else _local.folded.get(layer)
