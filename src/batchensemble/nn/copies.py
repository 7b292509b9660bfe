"""Copies of modules that share all tensors with the original, and so cost no memory."""

import copy
from collections.abc import Collection
from typing import Any, TypeVar

from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


def sharing_copy(module: Module) -> Module:
    """A deep copy that shares all tensors; what is replaced in one of the two stays as it is in the other.

    Examples:
        >>> layer = nn.Linear(2, 3)
        >>> twin = sharing_copy(layer).eval()
        >>> twin.weight is layer.weight, layer.training
        (True, True)
    """
    held = [*module.parameters(), *module.buffers()]
    held += [value for part in module.modules() for value in vars(part).values() if isinstance(value, Tensor)]
    return copy.deepcopy(module, {id(tensor): tensor for tensor in held})


def shallow_copy_as(kind: type[Module], module: nn.Module, without: Collection[str] = (), **attributes: Any) -> Module:
    """A copy as another class: the same tensors, submodules, settings and hooks, in containers of its own.

    What `module.compile()` made is left out, as in a deep copy: it would keep answering for `module`.

    Args:
        kind: the other class.
        module: left as it is.
        without: names of attributes that are not taken over.
        **attributes: further attributes to set.
    """
    twin = kind.__new__(kind)
    without = {*without, "_compiled_call_impl"}
    state = {k: v.copy() if isinstance(v, dict) else v for k, v in vars(module).items() if k not in without}
    twin.__dict__.update(state | attributes)
    return twin
