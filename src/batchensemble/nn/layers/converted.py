"""A converted module takes the place of a plain one: it is an instance of the plain class, too, and gives it back."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Self, TypeVar, cast

from torch import nn

from batchensemble.nn.copies import shallow_copy_as

Pick = int | None  # a member, or None for the mean of all of them
Kind = TypeVar("Kind", bound=nn.Module)
# Attributes of our own: a plain twin has none of them.
OURS = ("plain_type", "where", "theirs", "members", "routed", "rank", "init", "rows_at", "singles")


class Converted(nn.Module):
    """A module that replaces a plain one, and can give it back.

    Attributes:
        plain_type: the class of the plain module, the first one after ours in the order of inheritance.
        routed: whether the layer needs an ensemble's route; a layer used on its own expects equal blocks of rows.
        where: the layer's name in its network, for messages.
        theirs: attributes of the plain module under names that we use here.
    """

    plain_type: type[nn.Module]
    routed: bool = False
    where: str = ""
    theirs: tuple[tuple[str, Any], ...] = ()

    def __init_subclass__(cls) -> None:
        """Note the plain class. Its own `__init_subclass__`, which may register subclasses, is not called for ours."""
        cls.plain_type = cls.__mro__[cls.__mro__.index(Converted) + 1]

    def plain(self, pick: Pick) -> nn.Module:
        """The plain module of one member, or of the members' mean weight."""
        raise NotImplementedError

    @classmethod
    def around(cls, module: nn.Module) -> Self:
        """An instance that takes over everything `module` has: tensors, settings, hooks, a subclass's methods."""
        theirs = tuple((name, value) for name, value in vars(module).items() if name in OURS)
        kinds: Any = (type(module), cls)  # Any, since mypy holds that a class cannot be hashed
        both = subclass_of_both(*kinds)
        return cast(Self, shallow_copy_as(both, module, without=OURS, theirs=theirs))

    def plain_twin(self) -> nn.Module:
        """An instance of the plain class with everything that this one has, except what makes it ours."""
        return shallow_copy_as(self.plain_type, self, without=OURS, **dict(self.theirs))


def mark_routed_(layer: Converted, name: str) -> Converted:
    """Tell a layer and its parts that they belong to an ensemble, under this name in its network."""
    for inner, part in layer.named_modules():
        if isinstance(part, Converted):
            part.where = f"{name}.{inner}" if inner else name
            part.routed = True
    return layer


def outermost(net: nn.Module, *kinds: type[Kind]) -> Iterator[tuple[str, Kind]]:
    """All modules of these kinds with their names, except those inside another one of them."""
    inside: set[nn.Module] = set()
    for name, module in net.named_modules():
        if isinstance(module, kinds) and module not in inside:
            inside.update(module.modules())
            yield name, module


@cache
def subclass_of_both(plain: type[nn.Module], ours: type[Converted]) -> type[Converted]:
    """`ours`, if it is a subclass of `plain`; otherwise a subclass of both, which has the methods of `plain`.

    Examples:
        >>> class Named(nn.Linear): ...
        >>> [kind.__name__ for kind in subclass_of_both(Named, Converted).__mro__[:3]]
        ['Named', 'Converted', 'Named']
    """
    if issubclass(ours, plain):
        return ours

    def reduce(self: nn.Module) -> tuple[Any, ...]:  # pickle would look for the class under its name
        return _new_of_both, (plain, ours), self.__getstate__()

    return type(plain.__name__, (ours, plain), {"__module__": plain.__module__, "__reduce__": reduce})


def _new_of_both(*kinds: Any) -> Converted:
    kind = subclass_of_both(*kinds)
    return kind.__new__(kind)
