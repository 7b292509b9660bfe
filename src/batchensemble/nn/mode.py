"""Evaluation mode for the length of a call, also where calls of several threads overlap."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

_switching = threading.Lock()
_borrowed: dict[nn.Module, tuple[int, dict[nn.Module, bool]]] = {}  # calls at work, and the modes to return to


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode for a while; afterwards every module is back in the mode that it was in.

    The mode belongs to the module, not to a thread: of calls that overlap, the first switches and the last restores.

    Examples:
        >>> net = nn.Dropout()
        >>> with evaluating(net):
        ...     net.training
        False
        >>> net.training
        True
    """
    with _switching:
        calls, modes = _borrowed.get(model) or (0, {module: module.training for module in model.modules()})
        _borrowed[model] = calls + 1, modes
        model.eval()
    try:
        yield
    finally:
        with _switching:
            calls, modes = _borrowed.pop(model)
            if calls > 1:
                _borrowed[model] = calls - 1, modes
            else:
                for module, mode in modes.items():
                    module.training = mode
