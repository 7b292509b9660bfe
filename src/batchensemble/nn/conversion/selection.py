"""Which layers of a network to convert: glob patterns or a predicate, ties, and the fan-out."""

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from batchensemble.nn.conversion.kinds import is_layer, is_whole

Predicate = Callable[[str, nn.Module], bool]
Rule = str | Iterable[str] | Predicate | None


class Selection:
    """The user's choice over one network.

    Args:
        net: the network, still plain.
        include: glob patterns on module names, or a predicate `(name, module) -> bool`; all layers by default.
        exclude: likewise; it wins over `include`.
        fan_out: without `include`, only modules registered from this one on are chosen.
    """

    def __init__(self, net: nn.Module, include: Rule, exclude: Rule, fan_out: str | None) -> None:
        self._names: dict[nn.Module, list[str]] = {}
        for name, module in net.named_modules(remove_duplicate=False):
            self._names.setdefault(module, []).append(name)
        self._include, self._exclude = self._matcher("include", include), self._matcher("exclude", exclude)
        self._tied = tied_modules(net)
        before = self._modules_before(fan_out)
        self._before = before if include is None else set()

    def candidates(self) -> Iterator[tuple[str, nn.Module]]:
        """Layers, and modules with parameters of their own; nothing inside a module that is converted as a whole.

        Each comes with the first of its names.
        """
        inside: set[nn.Module] = set()
        for module, names in self._names.items():
            if module in inside:
                continue
            if is_whole(module):
                inside.update(module.modules())
                yield names[0], module
            elif is_layer(module) or any(True for _ in module.parameters(recurse=False)):
                yield names[0], module

    def refusal(self, module: nn.Module) -> str:
        """Why this layer is not chosen; empty if it is."""
        if self._exclude is not None and any(self._matches(self._exclude, part) for part in module.modules()):
            return "excluded"  # itself, or a part that cannot stay plain on its own (an attention's output)
        named = self._include is not None and self._matches(self._include, module)
        if self._include is not None and not named:
            return "not included"
        if module in self._before:
            return "registered before the fan-out"
        if not named and isinstance(module, nn.Embedding):
            return "an embedding is converted only when include names it"
        tied = [self._tied[part] for part in module.modules() if part in self._tied]
        return f"tied: shares its weight with {tied[0]!r}" if tied and not named else ""

    def _matches(self, predicate: Predicate, module: nn.Module) -> bool:
        return any(predicate(name, module) for name in self._names[module])

    def _matcher(self, argument: str, rule: Rule) -> Predicate | None:
        if rule is None or (callable(rule) and not isinstance(rule, type)):
            return rule
        patterns: list[Any] = [rule] if isinstance(rule, str) or not isinstance(rule, Iterable) else list(rule)
        if not all(isinstance(pattern, str) for pattern in patterns):
            raise TypeError(
                f"{argument} must be glob patterns on names, or a predicate (name, module) -> bool, got {rule!r}"
            )
        known = [name for names in self._names.values() for name in names]
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in known):
                raise ValueError(
                    f"{argument}={pattern!r} matches no module of the network; dict(net.named_modules()) lists all"
                )
        return lambda name, _module: any(_covers(pattern, name) for pattern in patterns)

    def _modules_before(self, fan_out: str | None) -> set[nn.Module]:
        if fan_out is None:
            return set()
        names = [names[0] for names in self._names.values()]
        if fan_out not in names:
            raise ValueError(f"fan_out={fan_out!r} names no module of the network; dict(net.named_modules()) lists all")
        return set(list(self._names)[: names.index(fan_out)])


def _covers(pattern: str, name: str) -> bool:
    """Whether the pattern matches the module or a container around it."""
    parts = name.split(".")
    return any(fnmatchcase(".".join(parts[: i + 1]), pattern) for i in range(len(parts)))


def tied_modules(net: nn.Module) -> dict[nn.Module, str]:
    """Modules that share a parameter with another one, and that one's name."""
    holders: dict[int, list[tuple[str, nn.Module]]] = {}
    for name, module in net.named_modules():
        for parameter in module.parameters(recurse=False):
            holders.setdefault(id(parameter), []).append((name, module))
    tied: dict[nn.Module, str] = {}
    for group in holders.values():
        for name, module in group:
            others = [other for other, _ in group if other != name]
            if others:
                tied[module] = others[0]
    return tied
