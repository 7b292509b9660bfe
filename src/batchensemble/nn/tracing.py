"""What a layer may ask while a graph is made of it."""

from collections.abc import Callable

import torch
from torch import Tensor


def _answered_while_traced(question: Callable[[], bool]) -> Callable[[], bool]:
    """`torch.compiler.assume_constant_result`, which would import the compiler here and now."""
    question._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return question


def is_exporting() -> bool:
    """Whether `torch.export` is at work; `torch.compiler.is_exporting` says so of every compiled graph before 2.13."""
    return bool(torch.compiler._is_exporting_flag)


@_answered_while_traced
def is_transformed() -> bool:
    """Whether the graph is one of `torch.func`'s (vmap, grad, jvp), which do not know Functions of ours in a graph."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_compiled() -> bool:
    """Whether `torch.compile` makes a graph of the layers as they are: for no export, under no transform."""
    return torch.compiler.is_compiling() and not is_exporting() and not is_transformed()


def is_as_made(y: Tensor) -> bool:
    """Whether nothing was written into y, in the graph that is being made, since an operation made it.

    Examples:
        >>> def written(x: Tensor) -> Tensor:
        ...     y = x * 2
        ...     return y if is_as_made(y) else -y
        >>> torch.compile(written, backend="eager", fullgraph=True)(torch.ones(1))
        tensor([2.])
    """
    from torch._dynamo.comptime import comptime  # it takes a while to import

    comptime(_look)
    return _seen_as_made()


_versions = [0]


def _look(context: object) -> None:
    """In Python, while the graph is made: its own tensors count what is written into them."""
    _versions[0] = context.get_local("y").as_fake()._version  # type: ignore[attr-defined]


@_answered_while_traced
def _seen_as_made() -> bool:
    return _versions[0] == 0
