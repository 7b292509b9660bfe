"""Questions that a layer may ask while it is traced into a graph."""

from collections.abc import Callable

import torch
from torch import Tensor


def _answered_while_traced(question: Callable[[], bool]) -> Callable[[], bool]:
    """Do what `torch.compiler.assume_constant_result` does, which would import the compiler right away."""
    question._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return question


def is_exporting() -> bool:
    """Whether `torch.export` is tracing; `torch.compiler.is_exporting` is true in any compiled graph before 2.13."""
    return bool(torch.compiler._is_exporting_flag)


@_answered_while_traced
def is_transformed() -> bool:
    """Whether a `torch.func` transform (vmap, grad, jvp) is active: in a graph they do not support our Functions."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_compiled() -> bool:
    """Whether `torch.compile` is tracing the layers as they are: not for an export, not under a transform."""
    return torch.compiler.is_compiling() and not is_exporting() and not is_transformed()


def is_known(condition: bool | torch.SymBool) -> bool:
    """Whether a condition on sizes holds; in a graph, whether it does for all sizes that the graph is made for.

    Asking does not narrow these sizes down.

    Examples:
        >>> is_known(torch.ones(3).shape[0] == 3)
        True
    """
    if not torch.compiler.is_compiling():
        return bool(condition)
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # slow to import

    return statically_known_true(condition)


def only_computes(x: Tensor) -> bool:
    """Whether an operation on x runs at once, on real values: nothing traces, transforms, counts or fakes it.

    Examples:
        >>> only_computes(torch.ones(1)), only_computes(torch.ones(1, device="meta"))
        (True, False)
        >>> bool(torch.vmap(lambda x: x if only_computes(x) else x + 1)(torch.zeros(1)))
        True
    """
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() or is_transformed():
        return False
    return type(x) is Tensor and not x.is_meta and not torch._C._len_torch_dispatch_stack()


def can_be_read(x: Tensor) -> bool:
    """Whether x has values to look at: nothing traces it, and no CUDA graph is being captured.

    Examples:
        >>> can_be_read(torch.ones(1)), can_be_read(torch.ones(1, device="meta"))
        (True, False)
    """
    return only_computes(x) and not (x.is_cuda and torch.cuda.is_current_stream_capturing())


def is_as_made(y: Tensor) -> bool:
    """Whether nothing has been written into y, in the graph being traced, since an operation made it.

    Examples:
        >>> def written(x: Tensor) -> Tensor:
        ...     y = x * 2
        ...     return y if is_as_made(y) else -y
        >>> torch.compile(written, backend="eager", fullgraph=True)(torch.ones(1))
        tensor([2.])
    """
    from torch._dynamo.comptime import comptime  # slow to import

    comptime(_look)
    return _seen_as_made()


_versions = [0]


def _look(context: object) -> None:
    """Runs in Python during tracing, where the graph's own tensors count the writes into them."""
    _versions[0] = context.get_local("y").as_fake()._version  # type: ignore[attr-defined]


@_answered_while_traced
def _seen_as_made() -> bool:
    return _versions[0] == 0
