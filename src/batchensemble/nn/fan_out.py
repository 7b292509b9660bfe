"""Late fan-out: one copy of the batch up to a module, `members` copies from there on.

The module's inputs are repeated as it is called. What the networks around it still hold from before (an attention
mask) is repeated when they hand it to a later module.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from batchensemble.nn.route import Route, advance, current


class FanOut:
    """The hook on the fan-out module."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Open the way, and repeat the module's rows."""
        route = current()
        if route is None or route.fan_out is None:
            return args, kwargs
        repeated = repeat_rows((args, kwargs), route, any_multiple=True)
        advance(route.fanned())
        return repeated  # type: ignore[no-any-return]


class Later:
    """The hook on modules that may still be given rows from before the fan-out."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Repeat what has the rows of one copy."""
        route = current()
        if route is None or route.fan_out is not None or route.copies == 1:
            return args, kwargs
        return repeat_rows((args, kwargs), route, any_multiple=False)  # type: ignore[no-any-return]


def repeat_rows(tree: Any, route: Route, any_multiple: bool) -> Any:
    """Every tensor with the rows of one copy, once per copy, member-major."""
    count = route.count if route.fan_out is not None else route.count // route.copies
    axis, copies = route.axis, route.copies

    def repeat(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or leaf.ndim <= axis or copies == 1:
            return leaf
        rows = leaf.shape[axis]
        if rows == count or (any_multiple and rows > count and rows % count == 0 and leaf.is_floating_point()):
            return torch.cat([leaf] * copies, axis)
        return leaf

    return tree_map(repeat, tree)


def install_(net: nn.Module, name: str) -> None:
    """Put the hooks in place."""
    target = net.get_submodule(name)
    target.register_forward_pre_hook(FanOut(), with_kwargs=True)
    for module in _called_by_ancestors(net, name):
        if module is not target:
            module.register_forward_pre_hook(Later(), with_kwargs=True)


def remove_(net: nn.Module) -> None:
    """Take them away again."""
    for module in net.modules():
        hooks = module._forward_pre_hooks
        for key in [key for key, hook in hooks.items() if isinstance(hook, FanOut | Later)]:
            del hooks[key]
            module._forward_pre_hooks_with_kwargs.pop(key, None)


def _called_by_ancestors(net: nn.Module, name: str) -> Iterator[nn.Module]:
    """The modules that the networks around the fan-out call themselves."""
    parts = name.split(".")
    ancestors = [net.get_submodule(".".join(parts[:i])) for i in range(len(parts))]
    for ancestor in ancestors:
        for child in _callable_children(ancestor):
            if all(child is not other for other in ancestors):
                yield child


def _callable_children(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        if isinstance(child, nn.ModuleList | nn.ModuleDict):
            yield from _callable_children(child)
        else:
            yield child
