"""Late fan-out: one copy of the batch up to a module, `members` copies from there on.

The module's inputs are repeated as it is called. What the networks around it still hold from before (an attention
mask) is repeated when they hand it to a later module.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from batchensemble.nn.route import Route, advance, current


class FanOut:
    """The hook on the fan-out module."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Open the way, and repeat the module's rows."""
        route = current()
        if route is None or route.fan_out is None:
            return args, kwargs
        rows = _rows_inside((args, kwargs), route)
        advance(route.fanned())
        return repeat_rows((args, kwargs), route, rows)  # type: ignore[no-any-return]


class Later:
    """The hook on modules that may still be given rows from before the fan-out."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Repeat what has the rows of one copy."""
        route = current()
        if route is None or route.fan_out is not None or route.copies == 1:
            return args, kwargs
        return repeat_rows((args, kwargs), route, route.count // route.copies)  # type: ignore[no-any-return]


def repeat_rows(tree: Any, route: Route, rows: int) -> Any:
    """Every tensor with `rows` rows, once per copy, member-major."""
    axis, copies = route.axis, route.copies

    def repeat(leaf: Any) -> Any:
        has_rows = isinstance(leaf, Tensor) and leaf.ndim > axis and leaf.shape[axis] == rows
        return torch.cat([leaf] * copies, axis) if has_rows and copies > 1 else leaf

    return tree_map(repeat, tree)


def _rows_inside(tree: Any, route: Route) -> int:
    """How many rows the batch has at the fan-out: as many as outside, or k for each (windows, frames)."""
    sizes = [t.shape[route.axis] for t in tree_leaves(tree) if isinstance(t, Tensor) and t.ndim > route.axis]
    if route.count == 0 or any(size == route.count for size in sizes):
        return route.count
    return next((size for size in sizes if size and size % route.count == 0), route.count)


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
