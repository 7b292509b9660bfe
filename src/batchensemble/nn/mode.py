"""Evaluation mode for the length of a call, also where calls of several threads overlap."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

_switching = threading.Lock()
_borrowed: dict[nn.Module, tuple[int, bool]] = {}  # calls at work in a module, and the mode to return to


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode for a while; afterwards every module is back in the mode that it was in.

    The mode belongs to the module, not to a thread: of calls that overlap, the first switches and the last restores.
    They may come from different networks that share some modules.

    Examples:
        >>> net = nn.Dropout()
        >>> with evaluating(net):
        ...     net.training
        False
        >>> net.training
        True
    """
    modules = list(model.modules())
    with _switching:
        for module in modules:
            calls, mode = _borrowed.get(module, (0, module.training))
            _borrowed[module] = calls + 1, mode
    try:
        if any(module.training for module in modules):  # a call in each of them, which small networks would notice
            model.eval()  # nobody restores the mode of what is borrowed, so it needs no lock
        yield
    finally:
        with _switching:
            for module in modules:
                calls, mode = _borrowed.pop(module)
                if calls > 1:
                    _borrowed[module] = calls - 1, mode
                elif module.training != mode:
                    module.training = mode
