"""Late fan-out: one copy of the batch up to a module, `members` copies from there on.

The module's inputs are repeated when it is called. What the networks around it still hold from before (an attention
mask) is repeated when they pass it to a later module.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from batchensemble.nn.routing.route import Route, advance, current
from batchensemble.nn.routing.rows import axis_for_rows, rows_in
from batchensemble.nn.tracing import is_exporting, is_known
from batchensemble.nn.trees import items, rebuilt, tensors

_CARRIERS = (Tensor, PackedSequence)  # what may hold rows


class FanOut:
    """The hook on the fan-out module: it advances the route, and repeats the module's rows."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Repeat the inputs for every member; in later calls of the module, only those from before the fan-out."""
        route = current()
        if route is None or route.fan_out is None:
            return _of_every_copy(args, kwargs, route)
        rows = _rows_inside((args, kwargs), route)
        advance(route.fanned())
        return repeat_rows((args, kwargs), route, rows)  # type: ignore[no-any-return]


class Later:
    """The hook on modules that may still receive rows from before the fan-out."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Repeat the inputs that hold only one copy of the rows."""
        return _of_every_copy(args, kwargs, current())


def _of_every_copy(args: tuple[Any, ...], kwargs: dict[str, Any], route: Route | None) -> tuple[Any, Any]:
    """The inputs of a module after the fan-out, with those from before it repeated."""
    if route is None or route.fan_out is not None or route.copies == 1:
        return args, kwargs
    return repeat_rows((args, kwargs), route, route.count // route.copies)  # type: ignore[no-any-return]


def repeat_rows(tree: Any, route: Route, rows: int) -> Any:
    """Repeat every tensor that has `rows` rows, once per copy, member-major.

    A structure without such a tensor is passed on as it is: a module may write into an object that the network reads
    afterwards.
    """
    carriers = tensors(tree, _CARRIERS) if route.copies > 1 else []
    if all(_axis_of(carrier, route, rows) is None for carrier in carriers):
        return tree
    if isinstance(tree, _CARRIERS):
        return _repeated(tree, route, rows)
    parts = items(tree) or {}
    return rebuilt(tree, {key: repeat_rows(part, route, rows) for key, part in parts.items()})


def _repeated(carrier: Tensor | PackedSequence, route: Route, rows: int) -> Tensor | PackedSequence:
    if isinstance(carrier, PackedSequence):
        return _repeat_packed(carrier, route.copies)
    return torch.cat([carrier] * route.copies, _axis_of(carrier, route, rows) or 0)


def _axis_of(carrier: Tensor | PackedSequence, route: Route, rows: int) -> int | None:
    """The axis on which a tensor holds so many rows, 0 for a packed sequence; `None` if it does not."""
    if isinstance(carrier, PackedSequence):
        return 0 if _rows(carrier, 0) == rows else None
    at = axis_for_rows(carrier, route.axis)
    if carrier.ndim == 2 and at == 1 and carrier.is_floating_point() and _has_rows_in_front(carrier, route, rows):
        at = 0
    return at if carrier.ndim > at and carrier.shape[at] == rows else None


def _has_rows_in_front(carrier: Tensor, route: Route, rows: int) -> bool:
    """Whether a time-first network has turned its rows into vectors, `(N, features)`, in one copy or in all of them.

    A shape that could also be `(T, N)`, with a number for every step, is read as that.
    """
    holds = is_known if is_exporting() else bool  # an export is not to be narrowed down to some lengths
    first, last = (any(holds(size == whole) for whole in (rows, rows * route.copies)) for size in carrier.shape)
    return first and not (last and all(holds(size == carrier.shape[0]) for size in route.before))


def _rows(carrier: Tensor | PackedSequence, axis: int) -> int | None:
    return int(carrier.batch_sizes[0]) if isinstance(carrier, PackedSequence) else rows_in(carrier, axis)


def _repeat_packed(packed: PackedSequence, copies: int) -> PackedSequence:
    padded, lengths = pad_packed_sequence(packed)
    return pack_padded_sequence(torch.cat([padded] * copies, 1), lengths.repeat(copies), enforce_sorted=False)


def _rows_inside(tree: Any, route: Route) -> int:
    """How many rows the batch has at the fan-out: as many as outside, or k for each (windows, frames)."""
    carriers = tensors(tree, _CARRIERS)
    if route.count == 0 or any(_axis_of(carrier, route, route.count) is not None for carrier in carriers):
        return route.count
    sizes = [_rows(carrier, route.axis) for carrier in carriers]
    return next((size for size in sizes if size and size % route.count == 0), route.count)


def install_(net: nn.Module, name: str) -> None:
    """Put the hooks in place."""
    target = net.get_submodule(name)
    target.register_forward_pre_hook(FanOut(), with_kwargs=True)
    for module in _called_by_ancestors(net, name):
        if module is not target:
            module.register_forward_pre_hook(Later(), with_kwargs=True)


def remove_(net: nn.Module) -> None:
    """Remove the hooks again."""
    for module in net.modules():
        hooks = module._forward_pre_hooks
        for key in [key for key, hook in hooks.items() if isinstance(hook, FanOut | Later)]:
            del hooks[key]
            module._forward_pre_hooks_with_kwargs.pop(key, None)


def what_the_cut_changes(name: str, kwargs: Mapping[str, Any]) -> str:
    """A note for the error of a network that failed: what the fan-out at `name` changes in it; empty if nothing."""
    route, notes = current(), []
    if route is None or route.copies == 1:
        return ""
    if route.fan_out is None:  # the batch has passed it
        notes.append(
            f"after it there are {route.copies} copies of the rows. A network that joins them with rows from before, "
            f"as a residual connection does, cannot be cut at fan_out={name!r}"
        )
    if kwargs.get("labels") is not None:
        notes.append(
            "in evaluation `labels` come once for every member, for a loss behind the cut: where the network reads "
            "them before it, leave them out, or give what it makes of them (decoder_input_ids) as well"
        )
    return "; ".join([f"The batch is repeated at fan_out={name!r}", *notes]) if notes else ""


def _called_by_ancestors(net: nn.Module, name: str) -> Iterator[nn.Module]:
    """The modules that the networks around the fan-out call directly."""
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
