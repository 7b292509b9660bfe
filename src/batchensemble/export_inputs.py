"""The inputs of an exported graph: what they are called, what they hold, and which of their axes are dynamic."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from batchensemble.ensemble import Ensemble
from batchensemble.nn.routing.rows import axis_for_rows, rows_in
from batchensemble.nn.trees import tensors


@dataclass(frozen=True)
class Inputs:
    """The example inputs of an export: the tensors in them become inputs of the graph.

    Args:
        args: tensors given by position.
        kwargs: tensors given by name, in the order of the network's signature.
        constants: what else was given by name, and is part of the graph.
        names: what the graph calls its inputs.
        shapes: which axis of each is dynamic, as `torch.export` takes it for `Served`.
    """

    args: tuple[Tensor, ...]
    kwargs: dict[str, Tensor]
    constants: dict[str, Any]
    names: tuple[str, ...]
    shapes: dict[str, Any]

    @classmethod
    def of(cls, model: Ensemble, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> "Inputs":
        """Sort what was given to an export."""
        edge, kwargs = model.edge, model.edge.ordered(kwargs)
        rows = edge.rows(args, kwargs)
        if rows < 2:
            raise ValueError("export needs at least two example rows, or torch takes their number for fixed")
        constants = {name: value for name, value in kwargs.items() if not isinstance(value, Tensor)}
        by_name = {name: value for name, value in kwargs.items() if name not in constants}
        by_place = {name or f"inputs_{place}": value for place, (name, value) in enumerate(edge.named(args))}
        _check_tensors(by_place, constants)
        shapes = _dynamic(model, by_place | by_name, rows)
        first = {by_position(by_name): tuple(shapes.pop(name) for name in by_place)} if args else {}
        return cls(args, by_name, constants, (*by_place, *by_name), first | shapes)


def by_position(keywords: Collection[str]) -> str:
    """What a program calls all inputs given by position: `args`, unless a keyword is called so."""
    return "_" * ("args" in keywords) + "args"


def _check_tensors(by_place: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
    """Refuse what can be neither an input of a graph nor a constant in it."""
    for name, value in by_place.items():
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"what a graph gets by position is a tensor, and {name} is {kind}: give constants by name")
    for name, value in constants.items():
        if tensors(value):
            raise TypeError(f"inputs of a graph are single tensors, and {name} is {type(value).__name__} of tensors")


def _dynamic(model: Ensemble, inputs: Mapping[str, Tensor], rows: int) -> dict[str, dict[int, Any]]:
    """Mark the rows as dynamic in every input that has them."""
    batch, shared = torch.export.Dim("batch"), model.settings.shared_inputs
    dynamic: dict[str, dict[int, Any]] = {}
    for name, tensor in inputs.items():
        count = None if name in shared else rows_in(tensor, model.edge.axis)
        if count not in (None, 1, rows):
            raise ValueError(
                f"{name} of shape {tuple(tensor.shape)} does not hold the {rows} rows, and a graph cannot tell for "
                "batches of other sizes: if it never holds rows, name it in shared_inputs"
            )
        dynamic[name] = {axis_for_rows(tensor, model.edge.axis): batch} if count == rows else {}
    return dynamic
