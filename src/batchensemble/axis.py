"""The member axis has one rule: folded into the batch inside a network, explicit at its edges.

Inside, `(members * N, ...)`, member-major, so that ordinary modules work unchanged; outside, `(members, N, ...)`.
This file converts one into the other.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from batchensemble.nn.rows import axis_for_rows, rows_in
from batchensemble.trees import map_tensors, tensors

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
Carriers = tuple[bool, ...]  # for every tensor among the inputs, in order: whether it carries rows
_COUNT = "num_items_in_batch"  # Transformers' losses sum over the labels and divide by it; Trainer passes it
_LABELS = ("labels", "start_positions", "end_positions")  # what Trainer takes for labels


def with_member(signature: inspect.Signature) -> inspect.Signature:
    """A network's signature, plus the keyword `member`.

    Examples:
        >>> str(with_member(inspect.signature(lambda x, **more: x)))
        '(x, *, member=None, **more)'
    """
    if "member" in signature.parameters:
        raise ValueError("the network's forward has an argument called 'member', which an ensemble needs itself")
    parameters = list(signature.parameters.values())
    open_ended = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD
    member = inspect.Parameter("member", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters.insert(len(parameters) - open_ended, member)
    return signature.replace(parameters=parameters)


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

    def rows(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, torch.device]:
        """N, the number of rows of the first tensor argument in the signature, and that tensor's device."""
        for value in self._in_order(args, kwargs):
            for tensor in tensors(value):
                if tensor.is_nested:
                    raise TypeError("a nested tensor has no batch axis: give the network padded rows and a mask")
                if tensor.ndim > self.axis:
                    return tensor.shape[self.axis], tensor.device
        raise ValueError(f"no argument is a tensor with rows on axis {self.axis}, so there is no batch to answer")

    def carriers(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Carriers:
        """Which tensors carry the batch's rows: those of its size. All members share the others.

        Asked once for a batch, since a part of it may happen to be as long as a shared tensor.
        """
        rows, _ = self.rows(args, kwargs)
        return tuple(rows_in(tensor, self.axis) == rows for _, tensor in self._unshared(args, kwargs))

    def part(self, tensor: Tensor, start: int, size: int) -> Tensor:
        """Some of a tensor's rows."""
        return tensor.narrow(axis_for_rows(tensor, self.axis), start, size)

    def check_parts(self, carriers: Carriers, args: Sequence[Any], kwargs: Mapping[str, Any], fits: bool) -> None:
        """Refuse to cut a batch into parts if a tensor seems to have its rows on another axis, and would stay whole.

        A part, repeated for all members, may be as long as the batch; the whole tensor would then fit without an error.
        Only if it `fits` are shared tensors asked, too: a state or a mask may have been named there for its other axes.
        """
        rows, _ = self.rows(args, kwargs)
        unshared = zip(carriers, self._unshared(args, kwargs), strict=True)
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

    def map_rows(
        self, function: Callable[[str, Tensor], Tensor], carriers: Carriers, args: Sequence[Any], kwargs: Any
    ) -> Inputs:
        """Apply `function(name, tensor)` to every tensor that carries rows, with the name of its argument."""
        carries = iter(carriers)

        def each(name: str, value: Any) -> Any:
            if name in self.shared:
                return value
            return map_tensors(lambda tensor: function(name, tensor) if next(carries) else tensor, value)

        positional = tuple([each(name, value) for name, value in self.named(args)])
        return positional, {name: each(name, value) for name, value in kwargs.items()}

    def repeat(self, copies: int, carriers: Carriers, args: Sequence[Any], kwargs: Any, late: bool = False) -> Inputs:
        """Repeat the batch, member-major; if `late`, only what the network's own loss reads after the fan-out."""
        if copies == 1:
            return tuple(args), dict(kwargs)

        def repeated(name: str, tensor: Tensor) -> Tensor:
            if late and name not in _LABELS:
                return tensor
            return torch.cat([tensor] * copies, axis_for_rows(tensor, self.axis))  # which keeps channels_last

        args, kwargs = self.map_rows(repeated, carriers, args, kwargs)
        if kwargs.get(_COUNT) is not None:
            kwargs[_COUNT] = kwargs[_COUNT] * copies
        return args, kwargs

    def unfold(self, tree: Any, members: int, rows: int, keep: int | None = None, trunk: bool = False) -> Any:
        """Reshape every tensor of an output that has `members * rows` rows to `(members, ..., rows, ...)`.

        Args:
            tree: the network's output.
            members: how many members answered.
            rows: how many rows each of them answered.
            keep: how many of each member's rows to keep (the first ones), if some were only there for safety.
            trunk: whether tensors may come from before a fan-out, where all members have the same `rows` rows.
        """

        def explicit(tensor: Tensor) -> tuple[Tensor, int | None]:
            if trunk and members > 1 and rows_in(tensor, self.axis) == rows:
                return tensor.expand(members, *tensor.shape), axis_for_rows(tensor, self.axis)
            axis = self.axis_of_rows(tensor, members * rows)
            if axis is None:
                return tensor, None
            return tensor.unflatten(axis, (members, tensor.shape[axis] // members)).movedim(axis, 0), axis

        def apply(tensor: Tensor) -> Tensor:
            found, axis = explicit(tensor)
            if axis is None or keep is None or keep == rows:
                return found
            return found.narrow(axis + 1, 0, found.shape[axis + 1] // rows * keep)

        return map_tensors(apply, tree)

    def axis_of_rows(self, tensor: Tensor, rows: int) -> int | None:
        """The batch axis; else the first axis that has the rows (an LSTM's h_n has them on axis 1); else none."""
        if tensor.ndim > self.axis and tensor.shape[self.axis] == rows:
            return self.axis
        found = [axis for axis in range(tensor.ndim) if tensor.shape[axis] == rows]
        if found:
            return found[0]
        several = tensor.ndim > self.axis and rows > 0 and tensor.shape[self.axis] % rows == 0
        return self.axis if several and tensor.shape[self.axis] else None

    def _unshared(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
        """Every tensor that may carry rows, with the name of its argument."""
        return self._tensors(args, kwargs, shared=False)

    def _tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any], shared: bool) -> Iterator[tuple[str, Tensor]]:
        for name, value in [*self.named(args), *kwargs.items()]:
            if (name in self.shared) == shared:
                yield from ((name, tensor) for tensor in tensors(value))

    def named(self, args: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """Arguments given by position, each with its name; empty for one of `*args`."""
        for position, value in enumerate(args):
            yield self.names[position] if position < self.positional else "", value

    def _in_order(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
        """The arguments that may carry rows, in the order of the network's signature."""
        places = {name: place for place, name in enumerate(self.names)}
        named = sorted(kwargs.items(), key=lambda item: places.get(item[0], len(places)))
        for name, value in [*self.named(args), *named]:
            if isinstance(value, PackedSequence):
                raise TypeError("a packed sequence has no batch axis: give the network padded rows and pack inside it")
            if name not in self.shared:
                yield value
