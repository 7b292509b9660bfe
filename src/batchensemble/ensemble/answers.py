"""What all members answered: where in a structured output the answer is, and where in it rows and classes are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from batchensemble.nn.trees import items, rebuilt
from batchensemble.prediction import Combine, Prediction


@dataclass(frozen=True)
class Field:
    """Where the answer is in a structured output: a key, an attribute or a position; `None` is the output itself."""

    key: str | int | None

    @classmethod
    def find(cls, output: Any, name: str | int | None) -> "Field":
        """The field of this name or position; by default `logits` if there is one, else the only or first tensor."""
        if isinstance(output, Tensor):  # whatever `name`: networks with auxiliary heads have fields in training only
            return cls(None)
        parts = items(output)
        if parts is None:
            kind = type(output).__name__
            raise TypeError(f"a network must return tensors, alone or in tuples, dicts or dataclasses; got {kind}")
        if name is not None:
            matches = [key for key in parts if str(key) == str(name)]
            if not matches or not isinstance(parts[matches[0]], Tensor):
                raise ValueError(f"output={name!r} is no tensor of the network's output; it has {_describe(parts)}")
            return cls(matches[0])
        if isinstance(parts.get("logits"), Tensor):
            return cls("logits")
        for key, value in parts.items():
            if isinstance(value, Tensor) and value.ndim:
                return cls(key)
        raise ValueError(
            f"the network's output holds no tensor to combine, only {_describe(parts)}. The answer must be the output "
            "itself or a field of it, with all rows in one tensor; if not, ask one member at a time: model(x, member=i)"
        )

    def get(self, output: Any) -> Tensor:
        """The answer itself."""
        value = output if self.key is None else (items(output) or {})[self.key]
        return value  # type: ignore[no-any-return]

    def put(self, output: Any, value: Tensor) -> Any:
        """The output with another answer in this place."""
        return value if self.key is None else rebuilt(output, (items(output) or {}) | {self.key: value})


@dataclass(frozen=True)
class Answers:
    """What all members answered, and where in it the answer that is combined, its rows and its classes are.

    Args:
        output: the network's output, its tensors with a first axis of members.
        field: which of them is the answer.
        axis: the axis of the rows in one member's answer.
        class_dim: the axis of the classes in it.

    Examples:
        >>> import torch
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

    def prediction(self, combine: Combine) -> Prediction:
        """The answers and their uncertainty."""
        return Prediction(self.rows_first, combine, self.class_axis)

    def put(self, answer: Tensor) -> Any:
        """The output with one answer, `(N, ...)`, in place of the members'; its rows back on their axis.

        An answer without the axes in front of the rows, a number for each row say, has them on its last axis.
        """
        axis = min(self.axis, answer.ndim - 1) if self.axis else 0
        return self.field.put(self.output, answer.movedim(0, axis) if axis else answer)


def _describe(parts: Mapping[Any, Any], most: int = 8) -> str:
    """What an output has: the names and kinds of its first fields, for messages."""
    kinds = {key: f"{type(value).__name__}{_no_axes(value)}" for key, value in parts.items()}
    named = [f"{key}: {kind}" for key, kind in kinds.items()][:most]
    rest = [f"and {len(kinds) - most} more"] if len(kinds) > most else []
    return ", ".join([*named, *rest]) or "nothing"


def _no_axes(value: Any) -> str:
    return " without axes" if isinstance(value, Tensor) and not value.ndim else ""
