"""The member axis has one rule: folded into the batch inside a network, explicit at its edges.

Inside, `(members * N, ...)`, member-major, so that ordinary modules work unchanged; outside, `(members, N, ...)`.
This file folds inputs; `places.py` unfolds outputs.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from batchensemble.nn.routing.rows import axis_for_rows, rows_in
from batchensemble.nn.trees import items, map_tensors, tensors

_COUNT = "num_items_in_batch"  # Transformers' losses sum over the labels and divide by it; Trainer passes it
_LABELS = ("labels", "start_positions", "end_positions")  # what Trainer takes for labels


class Given(NamedTuple):
    """A network's inputs, and for every tensor in them that is not shared by name, in order: whether it carries rows.

    This is decided once for a whole batch: a part of it may happen to be as long as a shared tensor.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    carriers: tuple[bool, ...]


@dataclass(frozen=True)
class Edge:
    """How a network's inputs and outputs carry rows.

    Args:
        axis: the axis that holds the rows.
        names: the network's argument names, in the order of its signature.
        shared: names of arguments that carry no rows.
        positional: how many of the names may be given by position.
    """

    axis: int
    names: tuple[str, ...]
    shared: tuple[str, ...]
    positional: int

    @classmethod
    def of(cls, signature: inspect.Signature, axis: int, shared: tuple[str, ...]) -> "Edge":
        """The edge of a network with this `forward`."""
        parameters = signature.parameters.values()
        names = tuple(p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
        positional = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        unknown = set(shared) - set(signature.parameters)
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            raise ValueError(f"shared_inputs names {sorted(unknown)}, which the network does not take: {list(names)}")
        return cls(axis, names, (*shared, _COUNT), positional)

    def rows(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
        """N, the number of rows of the first tensor argument."""
        return self.first(args, kwargs).shape[self.axis]

    def before_rows(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
        """The sizes of the axes before the batch axis, in that same tensor: of time-first rows, their steps."""
        return tuple(self.first(args, kwargs).shape[: self.axis]) if self.axis else ()

    def first(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
        """The first tensor argument in the signature that has a batch axis and is not shared."""
        tensor: Tensor
        for value in self._in_order(args, kwargs):
            for tensor in tensors(value):
                if tensor.is_nested:
                    raise TypeError("a nested tensor has no batch axis: give the network padded rows and a mask")
                if tensor.ndim > self.axis:
                    return tensor
        raise ValueError(_no_batch_message([*self.named(args), *kwargs.items()], self.axis))

    def given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Given:
        """The inputs of a batch. Tensors of its size carry its rows; all members share the others."""
        rows = self.rows(args, kwargs)
        carriers = tuple(rows_in(tensor, self.axis) == rows for _, tensor in self._tensors(args, kwargs, shared=False))
        return Given(tuple(args), dict(kwargs), carriers)

    def parts(self, given: Given, size: int, members: int) -> list[Given]:
        """Cut a batch into parts of `size` rows each, the last one perhaps smaller.

        Raises:
            ValueError: a tensor seems to have its rows on another axis, and would stay whole.
        """
        rows = self.rows(given.args, given.kwargs)
        if rows <= size:
            return [given]
        self._check_cut(given, rows, fits=size * members == rows)
        return [self.part(given, start, min(size, rows - start)) for start in range(0, rows, size)]

    def part(self, given: Given, start: int, size: int) -> Given:
        """The rows from `start` to `start + size`."""
        return self._map(given, lambda _, tensor, axis: tensor.narrow(axis, start, size))

    def _check_cut(self, given: Given, rows: int, fits: bool) -> None:
        """Refuse to cut a batch if a tensor seems to have its rows on another axis, and would stay whole.

        A part, repeated for all members, may be as long as the batch; the whole tensor then `fits`, without an error.
        In that case tensors that are shared by name are checked as well: a recurrent state or a mask may have been
        named in `shared_inputs` because of its other axes.
        """
        args, kwargs, carriers = given
        unshared = zip(carriers, self._tensors(args, kwargs, shared=False), strict=True)
        whole = [each for carries, each in unshared if not carries]
        for name, tensor in [*whole, *(self._tensors(args, kwargs, shared=True) if fits else ())]:
            if self._seems_to_hold_elsewhere(tensor, rows):
                raise ValueError(
                    f"batch_size cuts axis {self.axis} only, and {name or 'an argument'} of shape "
                    f"{tuple(tensor.shape)} seems to hold the {rows} rows elsewhere, as a recurrent state or a mask "
                    "does: call predict without batch_size on batches of your own. If it holds no rows, name it in "
                    "shared_inputs; if it is named there, choose another batch_size."
                )

    def _seems_to_hold_elsewhere(self, tensor: Tensor, rows: int) -> bool:
        """Whether it looks like a recurrent state, a mask per head, or a padding mask beside time-first inputs."""
        shape = tuple(tensor.shape)
        if len(shape) == 2:
            return self.axis == 1 and shape[0] == rows
        return len(shape) == 3 and (shape[1] == rows or (shape[0] > 0 and shape[0] % rows == 0))

    def repeat(self, given: Given, copies: int, late: bool = False) -> Given:
        """Repeat the batch, member-major; if `late`, only its labels, for a loss that is computed after the fan-out."""
        if copies == 1:
            return given

        def repeated(name: str, tensor: Tensor, axis: int) -> Tensor:
            if late and name not in _LABELS:
                return tensor
            return torch.cat([tensor] * copies, axis)  # which keeps channels_last

        args, kwargs, carriers = self._map(given, repeated)
        if kwargs.get(_COUNT) is not None:
            kwargs[_COUNT] = kwargs[_COUNT] * copies
        return Given(args, kwargs, carriers)

    def _map(self, given: Given, function: Callable[[str, Tensor, int], Tensor]) -> Given:
        """Apply `function(name, tensor, axis)` to every tensor that carries rows: its argument, itself, their axis."""
        carries = iter(given.carriers)

        def mapped(name: str, tensor: Tensor) -> Tensor:
            return function(name, tensor, axis_for_rows(tensor, self.axis)) if next(carries) else tensor

        def each(name: str, value: Any) -> Any:
            return value if name in self.shared else map_tensors(lambda tensor: mapped(name, tensor), value)

        args = tuple([each(name, value) for name, value in self.named(given.args)])
        return Given(args, {name: each(name, value) for name, value in given.kwargs.items()}, given.carriers)

    def _tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any], shared: bool) -> Iterator[tuple[str, Tensor]]:
        for name, value in [*self.named(args), *kwargs.items()]:
            if (name in self.shared) == shared:
                yield from ((name, tensor) for tensor in tensors(value))

    def named(self, args: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """Arguments given by position, each with its name; empty for one of `*args`."""
        for position, value in enumerate(args):
            yield (self.names[position] if position < self.positional else ""), value

    def ordered(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments given by name, in the order of the network's signature; last those that it does not name."""
        places = {name: place for place, name in enumerate(self.names)}
        return dict(sorted(kwargs.items(), key=lambda item: places.get(item[0], len(places))))

    def _in_order(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
        """The arguments that may carry rows, in the order of the network's signature."""
        for name, value in [*self.named(args), *self.ordered(kwargs).items()]:
            if isinstance(value, PackedSequence):
                raise TypeError("a packed sequence has no batch axis: give the network padded rows and pack inside it")
            if name not in self.shared:
                yield value


def _no_batch_message(given: Sequence[tuple[str, Any]], axis: int) -> str:
    """What came instead of a batch, and what to do."""
    kinds = [f"a tensor of shape {tuple(v.shape)}" if isinstance(v, Tensor) else type(v).__name__ for _, v in given]
    named = [f"{name}: {kind}" if name else kind for (name, _), kind in zip(given, kinds, strict=True)]
    closed = sorted({type(value).__name__ for _, value in given if _is_closed(value)})
    return (
        f"no argument is a tensor with rows on axis {axis}, so there is no batch to answer; got "
        f"{', '.join(named) or 'no argument'}. Arrays and lists become tensors by torch.as_tensor; a loader is asked "
        "batch by batch: be.Prediction.cat([model.predict(x) for x, _ in loader])"
        + "".join(f"; what a {name} holds is not seen: give its tensors in a dict or list" for name in closed)
    )


def _is_closed(value: Any) -> bool:
    """Whether a value may hold tensors in a way of its own: no tensor, array or constant, and no structure we know."""
    known = isinstance(value, Tensor | str | int | float | complex | None) or hasattr(value, "__array__")
    is_mapping, is_loader = hasattr(value, "keys"), hasattr(value, "__iter__")
    return not known and items(value) is None and (is_mapping or not is_loader)
