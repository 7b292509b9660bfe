"""The member axis has one rule: folded into the batch inside a network, explicit at its edges.

Inside, `(members * N, ...)`, member-major, so that ordinary modules work unchanged; outside, `(members, N, ...)`.
This file converts one into the other.
"""

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from batchensemble.nn.rows import axis_for_rows, rows_in

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
Carriers = tuple[bool, ...]  # for every tensor among the inputs, in order: whether it carries rows
_COUNT = "num_items_in_batch"  # Transformers' losses sum over the labels and divide by it; Trainer passes it
_LABELS = ("labels", "start_positions", "end_positions")  # what Trainer takes for labels


def map_tensors(function: Callable[[Tensor], Any], tree: Any) -> Any:
    """Apply `function` to every tensor in nested tuples, lists, dicts and dataclasses; the rest stays as it is.

    Examples:
        >>> map_tensors(lambda t: t + 1, {"a": torch.zeros(1), "b": (torch.ones(1), "text")})
        {'a': tensor([1.]), 'b': (tensor([2.]), 'text')}
    """
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return _refilled(tree, {key: map_tensors(function, value) for key, value in tree.items()})
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[map_tensors(function, value) for value in tree])
    if isinstance(tree, list | tuple):
        return type(tree)([map_tensors(function, value) for value in tree])
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return _replaced(tree, {f.name: map_tensors(function, getattr(tree, f.name)) for f in dataclasses.fields(tree)})
    return tree


def _refilled(tree: dict[Any, Any], items: dict[Any, Any]) -> dict[Any, Any]:
    """A dict of the same kind with these items."""
    if type(tree) is dict:
        return items
    if dataclasses.is_dataclass(tree):  # Transformers' outputs
        return type(tree)(**items)
    twin = copy.copy(tree)
    twin.update(items)
    return twin


def _replaced(tree: Any, values: dict[Any, Any]) -> Any:
    """A dataclass with these values in its fields, including those that its constructor does not take."""
    fields = dataclasses.fields(tree)
    twin = dataclasses.replace(tree, **{f.name: values[f.name] for f in fields if f.init})
    for field in fields:
        if not field.init:
            object.__setattr__(twin, field.name, values[field.name])
    return twin


def tensors(tree: Any) -> list[Tensor]:
    """The tensors of a tree, in order."""
    found: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(keep, tree)
    return found


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


@dataclasses.dataclass(frozen=True)
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


@dataclasses.dataclass(frozen=True)
class Field:
    """Where the answer is in a structured output: a key, an attribute or a position; `None` is the output itself."""

    key: str | int | None

    @classmethod
    def find(cls, output: Any, name: str | None) -> "Field":
        """The field called `name`; by default `logits` if there is one, else the only or first tensor."""
        if isinstance(output, Tensor):
            return cls(None)
        items = _items(output)
        if name is not None:
            matches = [key for key in items if str(key) == name]
            if not matches or not isinstance(items[matches[0]], Tensor):
                raise ValueError(f"output={name!r} is no tensor of the network's output; it has {_describe(items)}")
            return cls(matches[0])
        if isinstance(items.get("logits"), Tensor):
            return cls("logits")
        for key, value in items.items():
            if isinstance(value, Tensor) and value.ndim:
                return cls(key)
        raise ValueError(f"the network's output holds no tensor to combine, only {_describe(items)}")

    def get(self, output: Any) -> Tensor:
        """The answer itself."""
        value = output if self.key is None else _items(output)[self.key]
        return value  # type: ignore[no-any-return]

    def put(self, output: Any, value: Tensor) -> Any:
        """The output with another answer in this place."""
        if self.key is None:
            return value
        if isinstance(output, dict):
            return _refilled(output, {key: value if key == self.key else old for key, old in output.items()})
        if isinstance(output, tuple) and hasattr(output, "_fields"):
            return type(output)(*[value if name == self.key else old for name, old in _items(output).items()])
        if isinstance(output, list | tuple):
            return type(output)([value if i == self.key else old for i, old in enumerate(output)])
        return _replaced(output, _items(output) | {self.key: value})


@dataclasses.dataclass(frozen=True)
class Answers:
    """What all members answered, and where in it the answer that is combined, its rows and its classes are.

    Args:
        output: the network's output, its tensors with a first axis of members.
        field: which of them is the answer.
        axis: the axis of the rows in one member's answer.
        class_dim: the axis of the classes in it.

    Examples:
        >>> time_first = Answers(torch.zeros(3, 5, 7, 2), Field(None), axis=1, class_dim=-1)  # 5 steps, 7 rows
        >>> time_first.rows_first.shape, time_first.class_axis, time_first.put(torch.zeros(7, 5, 2)).shape
        (torch.Size([3, 7, 5, 2]), 2, torch.Size([5, 7, 2]))
    """

    output: Any
    field: Field
    axis: int
    class_dim: int

    @property
    def rows_first(self) -> Tensor:
        """The answers `(members, N, ...)`."""
        return self.field.get(self.output).movedim(self.axis + 1, 1)

    @property
    def class_axis(self) -> int:
        """The class axis of one member's answer once its rows are in front."""
        ndim = self.field.get(self.output).ndim - 1
        if self.axis == 0 or not -ndim <= self.class_dim < ndim:
            return self.class_dim
        axis = self.class_dim % ndim
        if axis == self.axis:
            return 0
        return axis + 1 if axis < self.axis else axis

    def put(self, answer: Tensor) -> Any:
        """The output with one answer, `(N, ...)`, in place of the members'; its rows back on their axis."""
        return self.field.put(self.output, answer.movedim(0, self.axis) if self.axis else answer)


def _items(output: Any) -> dict[Any, Any]:
    if isinstance(output, dict):
        return dict(output)
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        return dict(zip(output._fields, output, strict=True))
    if isinstance(output, list | tuple):
        return dict(enumerate(output))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        return {f.name: getattr(output, f.name) for f in dataclasses.fields(output)}
    raise TypeError(
        f"a network must return tensors, alone or in tuples, dicts or dataclasses; got {type(output).__name__}"
    )


def _describe(items: Mapping[Any, Any]) -> str:
    return ", ".join(f"{key}: {type(value).__name__}" for key, value in items.items()) or "nothing"
