"""Nested inputs and outputs: tensors in tuples, lists, dicts and dataclasses."""

import copy
import dataclasses
from collections import OrderedDict, UserDict
from collections.abc import Callable
from typing import Any

from torch import Tensor

Kinds = type | tuple[type, ...]
_DICTS = (dict, UserDict)  # the second is what Transformers' tokenizers and collators return


def items(tree: Any) -> dict[Any, Any] | None:
    """The parts of a structure by key, by name of field or by position; `None` if it is not one.

    Examples:
        >>> items({"logits": 1}), items([2, 3]), items("text")
        ({'logits': 1}, {0: 2, 1: 3}, None)
    """
    if isinstance(tree, _DICTS):
        return dict(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return dict(zip(tree._fields, tree, strict=True))
    if isinstance(tree, list | tuple):
        return dict(enumerate(tree))
    if _is_dataclass(tree):
        return {field.name: getattr(tree, field.name) for field in dataclasses.fields(tree)}
    return None


def rebuilt(tree: Any, parts: dict[Any, Any]) -> Any:
    """A structure of the same kind with other parts, under the same keys as `items` has them.

    Examples:
        >>> rebuilt((1, 2), {0: 3, 1: 4})
        (3, 4)
    """
    if isinstance(tree, _DICTS):
        return _refilled(tree, parts)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*parts.values())
    if isinstance(tree, list | tuple):
        return type(tree)(list(parts.values()))
    return _replaced(tree, parts)


def map_tensors(function: Callable[[Tensor], Any], tree: Any) -> Any:
    """Apply `function` to every tensor of a nested structure; the rest stays as it is, and is not copied.

    Examples:
        >>> import torch
        >>> map_tensors(lambda t: t + 1, {"a": torch.zeros(1), "b": (torch.ones(1), "text")})
        {'a': tensor([1.]), 'b': (tensor([2.]), 'text')}
    """
    if isinstance(tree, Tensor):
        return function(tree)
    parts = items(tree)
    if parts is None or not tensors(tree):
        return tree
    return rebuilt(tree, {key: map_tensors(function, part) for key, part in parts.items()})


def tensors(tree: Any, kinds: Kinds = Tensor) -> list[Any]:
    """The tensors of a nested structure, in order, or whatever else counts as one (`kinds`)."""
    if isinstance(tree, kinds):
        return [tree]
    return [tensor for part in (items(tree) or {}).values() for tensor in tensors(part, kinds)]


def constants(tree: Any) -> tuple[Any, ...]:
    """The plain constants in a nested structure, in order.

    Examples:
        >>> constants({"x": [1, "text"], "y": None, "z": object()})
        (1, 'text', None)
    """
    if isinstance(tree, str | int | float | complex | None):
        return (tree,)
    return tuple(leaf for part in (items(tree) or {}).values() for leaf in constants(part))


def _is_dataclass(tree: Any) -> bool:
    """As `dataclasses.is_dataclass` of an instance, which torch 2.11 cannot compile for `None` and some others."""
    return getattr(type(tree), "__dataclass_fields__", None) is not None


def _refilled(tree: Any, parts: dict[Any, Any]) -> Any:
    if type(tree) is dict:
        return parts
    if _is_dataclass(tree):  # Transformers' outputs
        return type(tree)(**parts)
    twin = tree.copy() if isinstance(tree, OrderedDict) else copy.copy(tree)  # torch 2.11 compiles only the first
    twin.update(parts)
    return twin


def _replaced(tree: Any, parts: dict[Any, Any]) -> Any:
    """A dataclass with exactly these values in its fields, whatever its constructor makes of them."""
    fields = dataclasses.fields(tree)
    twin = dataclasses.replace(tree, **{field.name: parts[field.name] for field in fields if field.init})
    for field in fields:
        object.__setattr__(twin, field.name, parts[field.name])  # a frozen one, too
    return twin
