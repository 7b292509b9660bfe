"""What a layer hands over to the norm behind it in a compiled graph: its output as it was before s.

A norm that knows `y = z ∘ s_i` reads z and takes s into its own scale (see `memberwise_norm`).
"""

import threading

from torch import Tensor

from batchensemble.nn.tracing import is_as_made


class _Local(threading.local):
    # Set here and not as a class default: a compiled graph guards on the instance's own attribute.
    def __init__(self) -> None:
        self.scaled: tuple[Tensor, Tensor, Tensor] | None = None


_local = _Local()


def remember_scaling(y: Tensor, z: Tensor, s: Tensor) -> None:
    """Record that `y = z ∘ s_i`, for a norm that may read z instead."""
    _local.scaled = (y, z, s)


def take_scaling(y: Tensor) -> tuple[Tensor, Tensor | None]:
    """`z, s` if the last layer made `y = z ∘ s_i` and nothing has changed y since; otherwise `y, None`."""
    scaled, _local.scaled = _local.scaled, None
    if scaled is None or scaled[0] is not y or not is_as_made(y):
        return y, None
    return scaled[1], scaled[2]


def forget_scaling() -> None:
    """Drop what no norm has taken: a graph would return it as one of its outputs."""
    _local.scaled = None
