"""Replace modules wherever a network holds them, not only among its children.

Networks reach layers in other ways, too: a list filled beside `add_module`, a dict of branches, a method bound once
(`self.project = self.layer.forward`). A plain layer left behind in one of them would still be called.
"""

from collections.abc import Mapping
from types import MethodType
from typing import Any

from torch import nn
from torch.nn.modules.module import _WrappedHook


def swap_(net: nn.Module, swaps: Mapping[nn.Module, nn.Module]) -> nn.Module:
    """Replace every module wherever it is held; tied modules stay tied.

    Returns:
        The network; another object if it is itself replaced.

    Examples:
        >>> net = nn.Sequential(nn.Linear(2, 2))
        >>> net.steps = [net[0], net[0].forward]
        >>> net = swap_(net, {net[0]: nn.Identity()})
        >>> net[0], net.steps[0] is net[0], net.steps[1].__self__ is net[0]
        (Identity(), True, True)
    """
    swap = _Swap(swaps)
    compiled: list[Any] = [
        module for module in net.modules() if dict(module.named_children()).get("_orig_mod") in swaps
    ]
    for module in [*net.modules(), *swaps.values()]:
        swap.inside_(vars(module))  # which include its children and hooks
    for wrapper in compiled:  # torch.compile's calls the module that it was made with until it is set up again
        wrapper.__setstate__(wrapper.__getstate__())
    return swaps.get(net, net)


class _Swap:
    """One pass over what modules hold."""

    def __init__(self, swaps: Mapping[nn.Module, nn.Module]) -> None:
        self._swaps = swaps
        self._seen: set[int] = set()  # containers may hold themselves

    def inside_(self, holder: dict[Any, Any] | list[Any]) -> None:
        """Replace what a container holds, in place: others may hold the container too."""
        if id(holder) in self._seen:
            return
        self._seen.add(id(holder))
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            new = self._of(value)
            if new is not value:
                holder[key] = new

    def _of(self, value: Any) -> Any:
        """What replaces `value`: mostly itself."""
        if isinstance(value, nn.Module):
            return self._swaps.get(value, value)
        if isinstance(value, MethodType):
            return self._method(value)
        if isinstance(value, tuple):
            return self._tuple(value)
        if isinstance(value, _WrappedHook):
            return self._hook(value)
        if isinstance(value, dict | list):
            self.inside_(value)
        return value

    def _method(self, method: MethodType) -> Any:
        owner = self._of(method.__self__)
        if owner is method.__self__:
            return method
        inherited = getattr(type(method.__self__), method.__name__, None) is method.__func__
        return getattr(owner, method.__name__) if inherited else MethodType(method.__func__, owner)

    def _hook(self, wrapped: _WrappedHook) -> _WrappedHook:
        """Renew a hook on loading, which holds its module weakly and would outlive it."""
        owner = wrapped.module() if wrapped.with_module else None
        return _WrappedHook(self._of(wrapped.hook), self._of(owner))

    def _tuple(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        items = [self._of(value) for value in values]
        if all(new is old for new, old in zip(items, values, strict=True)):
            return values
        return type(values)(*items) if hasattr(values, "_fields") else type(values)(items)
