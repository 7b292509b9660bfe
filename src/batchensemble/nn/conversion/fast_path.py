"""Switches for torch's fused encoder kernels, which read weights without calling the layers and so ignore members."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from batchensemble.nn.layers.converted import Converted

_SWITCHES = {
    nn.TransformerEncoderLayer: "activation_relu_or_gelu",
    nn.TransformerEncoder: "use_nested_tensor",
}
_SAVED = "_fast_path_before_conversion"

_switching = threading.Lock()
_before: list[bool] = []  # for every call of `off_everywhere` at work, the setting to return to


def off_(net: nn.Module) -> None:
    """Switch the fused path off in every encoder that holds a converted layer."""
    for module in net.modules():
        switch = _switch(module)
        if switch and not hasattr(module, _SAVED) and any(isinstance(part, Converted) for part in module.modules()):
            setattr(module, _SAVED, getattr(module, switch))
            setattr(module, switch, 0 if switch == "activation_relu_or_gelu" else False)


def on_(net: nn.Module) -> None:
    """Put the switches back as they were."""
    for module in net.modules():
        switch = _switch(module)
        if switch and hasattr(module, _SAVED):
            setattr(module, switch, getattr(module, _SAVED))
            delattr(module, _SAVED)


@contextmanager
def off_everywhere() -> Iterator[None]:
    """Switch the fused path off in all networks for a while: it also writes zeros at padded positions.

    torch has one switch for all threads: of calls that overlap, the first turns it off and the last restores it.
    """
    with _switching:
        _before.append(_before[0] if _before else torch.backends.mha.get_fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        with _switching:
            before = _before.pop()
            if not _before:
                torch.backends.mha.set_fastpath_enabled(before)


def _switch(module: nn.Module) -> str | None:
    return next((name for kind, name in _SWITCHES.items() if isinstance(module, kind)), None)
