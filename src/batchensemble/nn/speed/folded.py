"""Members' weights, folded once while nothing changes them: a decoder calls its layers again for every token."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from batchensemble.nn.rank_one import RankOne
from batchensemble.nn.speed.stacked_linear import as_autocast_has_it, stacked_linear

MOST_BYTES = 2**31  # for all folded weights together; a network that needs more keeps scaling activations


class Folded(NamedTuple):
    """`weight (members, out, in)` is `W ∘ s_i r_iᵀ`, inputs first in memory; `bias (members, out)`."""

    weight: Tensor
    bias: Tensor | None

    @classmethod
    def of(cls, layer: RankOne) -> Self:
        """All members' weights, in the dtype that autocast would give them."""
        weight = as_autocast_has_it(layer.fold(layer.r, layer.s))
        bias = None if layer.bias is None else as_autocast_has_it(layer.bias)
        inputs_first = weight if layer.input_first else weight.transpose(1, 2).contiguous()
        return cls(inputs_first.transpose(1, 2), bias)

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
    layers = [module for module in net.modules() if isinstance(module, RankOne) and module.features_at == -1]
    size = sum(layer.members * layer.weight.numel() * layer.weight.element_size() for layer in layers)
    before = _local.folded
    with torch.no_grad():
        _local.folded = {layer: Folded.of(layer) for layer in layers} if size <= MOST_BYTES else {}
    try:
        yield
    finally:
        _local.folded = before


def folded_weights(layer: nn.Module) -> Folded | None:
    """A layer's folded weights in this thread; `None` if there are none, or if gradients are enabled."""
    return None if not _local.folded or torch.is_grad_enabled() else _local.folded.get(layer)
