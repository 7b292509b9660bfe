"""torch's compiler, with options that suit members."""

from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any

from torch import nn

from batchensemble.nn.layers.member import member_modules

MEMBERS: Mapping[str, Any] = {"realize_reads_threshold": 6}
"""Options of torch's compiler for a network with members.

By default the compiler stores, instead of fusing with its users, whatever reads more than four tensors. With members a
pass over activations exceeds that easily, since it also reads r, s and a norm's vectors. See benchmarks/NOTES.md.
"""


def compile_(module: nn.Module, **kwargs: Any) -> None:
    """Call `module.compile(**kwargs)`, with the options for members if there are any in it."""
    module.compile(**(compile_arguments(**kwargs) if member_modules(module) else kwargs))


def compile_arguments(
    mode: str | None = None, options: Mapping[str, Any] | None = None, **others: Any
) -> dict[str, Any]:
    """The keyword arguments of `torch.compile` for a network with members.

    Examples:
        >>> compile_arguments(dynamic=False)
        {'dynamic': False, 'options': {'realize_reads_threshold': 6}}
        >>> compile_arguments(backend="eager")
        {'backend': 'eager'}
    """
    if others.get("backend", "inductor") != "inductor":
        given = {"mode": mode, "options": None if options is None else dict(options)}  # a copy: torch pops from it
        return {**others, **{name: value for name, value in given.items() if value is not None}}
    return {**others, "options": {**MEMBERS, **_options_of(mode), **(options or {})}}


def _options_of(mode: str | None) -> dict[str, Any]:
    if mode is None:
        return {}
    from torch._inductor import list_mode_options  # slow to import

    return dict(list_mode_options(mode))


def bound_copy(function: Callable[..., Any], owner: object) -> MethodType:
    """A copy of a function, bound to `owner`.

    It has a code object of its own, since torch counts recompilations by code object: what is compiled for one owner
    does not use up those of another.
    """
    return MethodType(FunctionType(function.__code__.replace(), function.__globals__), owner)
