"""The bases of converted modules: each replaces a plain one, and some of its tensors have one row per member."""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn

from batchensemble.nn.init import Fast, Init

Pick = int | None  # a member, or None for the mean of all of them


class Converted(nn.Module):
    """A module that replaces a plain one, and can give it back.

    Attributes:
        plain_type: the class of the plain module.
        routed: whether the layer needs an ensemble's route; a layer used on its own expects equal blocks of rows.
        where: the layer's name in its network, for messages.
        theirs: attributes of the plain module under names that we use here.
    """

    plain_type: type[nn.Module]
    routed: bool = False
    where: str = ""
    theirs: tuple[tuple[str, Any], ...] = ()

    def __init_subclass__(cls) -> None:
        """Do nothing, even if a plain class registers its subclasses: ours are not new layers by its author."""

    def plain(self, pick: Pick) -> nn.Module:
        """The plain module of one member, or of the members' mean weight."""
        raise NotImplementedError

    @classmethod
    def around(cls, module: nn.Module) -> Self:
        """An instance that takes over everything `module` has: tensors, settings, hooks, a subclass's methods."""
        theirs = tuple((name, value) for name, value in vars(module).items() if name in OURS)
        kinds: Any = (type(module), cls)  # Any, since mypy holds that a class cannot be hashed
        return cast(Self, reborn(module, passing_for(*kinds), without=OURS, plain_type=type(module), theirs=theirs))

    def plain_twin(self) -> nn.Module:
        """An instance of the plain class with everything that this one has, except what makes it ours."""
        return reborn(self, self.plain_type, without=OURS, **dict(self.theirs))


@cache
def passing_for(plain: type[nn.Module], ours: type[Converted]) -> type[Converted]:
    """`ours`, if it is a subclass of `plain`; otherwise a subclass of both, which has the methods of `plain`.

    Examples:
        >>> class Named(nn.Linear): ...
        >>> [kind.__name__ for kind in passing_for(Named, Converted).__mro__[:3]]
        ['Named', 'Converted', 'Named']
    """
    if issubclass(ours, plain):
        return ours

    def reduce(self: nn.Module) -> tuple[Any, ...]:  # pickle would look for the class under its name
        return _blank, (plain, ours), self.__getstate__()

    return type(plain.__name__, (ours, plain), {"__module__": plain.__module__, "__reduce__": reduce})


def _blank(*kinds: Any) -> Converted:
    kind = passing_for(*kinds)
    return kind.__new__(kind)


class FastModule(Converted):
    """A module with fast weights: built with a torch module's own arguments, or around a plain one.

    Args:
        *args: the torch module's own arguments.
        members: how many members share the weights.
        rank: components of the fast matrix, `sum_j s_j r_j^T`.
        init: how r and s start: "sign", "normal", "ones" or "first" (see `batchensemble.convert`).
        generator: source of random fast weights.
        **kwargs: the torch module's own keyword arguments.
    """

    def __init__(
        self,
        *args: Any,
        members: int,
        rank: int = 1,
        init: Init = "sign",
        generator: torch.Generator | None = None,
        **kwargs: Any,
    ) -> None:
        fast = Fast(members, rank, init, generator)
        super().__init__(*args, **kwargs)
        self.plain_type = type(self).__bases__[-1]
        self.become(fast)

    @classmethod
    def ensembled(cls, module: nn.Module, fast: Fast) -> Self:
        """Build the module around a plain one, and keep its weights."""
        layer = cls.around(module)
        layer.become(fast)
        return layer

    def become(self, fast: Fast) -> None:
        """Add members to a module that has been plain so far."""
        raise NotImplementedError


class MemberModule(Converted):
    """A leaf: its `stacked` tensors have one row per member, everything else is shared.

    Attributes:
        members: how many members there are.
        stacked: names of the parameters and buffers whose first axis is the member.
        fast_weights: names of those that the plain module does not have: r and s, or one of them.
    """

    members: int
    stacked: ClassVar[tuple[str, ...]] = ()
    fast_weights: ClassVar[tuple[str, ...]] = ()

    def extra_repr(self) -> str:
        """The plain module's own description, and the number of members."""
        plain = super().extra_repr()
        return f"{plain}, members={self.members}" if plain else f"members={self.members}"

    def stacked_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors with a row per member, in a fixed order."""
        for name in self.stacked:
            tensor = getattr(self, name, None)
            if tensor is not None:
                yield name, tensor

    @torch.no_grad()
    def stack_(self, *names: str) -> None:
        """Give every member its own copy of a plain parameter or buffer: `(...) -> (members, ...)`."""
        for name in names:
            tensor = getattr(self, name, None)
            if tensor is not None:
                put(self, name, tensor.detach().expand(self.members, *tensor.shape).clone())

    def reset_parameters(self) -> None:
        """Start as a new layer does: what is shared by torch's own rule, r and s by `init`, biases alike."""
        plain: Any = super()
        plain.reset_parameters()
        if "members" in vars(self):  # torch's constructor calls this, too
            self.start_members_()

    @torch.no_grad()
    def start_members_(self) -> None:
        """Draw r and s; of everything else, give all members what the first one has."""
        fresh = self.fresh(self.members, None)
        for name, tensor in self.stacked_tensors():
            tensor.copy_(fresh.get(name, tensor[:1].clone()))

    @torch.no_grad()
    def keep_(self, indices: Sequence[int]) -> None:
        """Keep only these members, in this order."""
        for name, tensor in self.stacked_tensors():
            put(self, name, tensor[list(indices)].clone())
        self.members = len(indices)

    @torch.no_grad()
    def grow_(self, count: int, like: int | None = None, generator: torch.Generator | None = None) -> None:
        """Add `count` members: copies of member `like`, or new ones."""
        fresh = {} if like is not None else self.fresh(count, generator)
        for name, tensor in self.stacked_tensors():
            if like is not None:
                rows = tensor[like : like + 1].expand(count, *tensor.shape[1:])
            else:
                rows = fresh.get(name, _mean(tensor).expand(count, *tensor.shape[1:]))
            put(self, name, torch.cat([tensor, rows]))
        self.members += count

    def fresh(self, count: int, generator: torch.Generator | None) -> dict[str, Tensor]:
        """Rows for new members, by the layer's own initialisation; other tensors start at the members' mean."""
        return {}

    def unstacked(self, pick: Pick) -> dict[str, Tensor]:
        """One member's tensors, or their means, under the plain module's names."""
        return {
            name: _mean(tensor) if pick is None else tensor[pick]
            for name, tensor in self.stacked_tensors()
            if name not in self.fast_weights
        }

    @torch.no_grad()
    def plain(self, pick: Pick) -> nn.Module:
        """The plain module of one member, or of the mean."""
        module = self.plain_twin()
        for name in self.fast_weights:
            del module._parameters[name]
        for name, tensor in self.unstacked(pick).items():
            put(module, name, tensor.detach().clone())
        return module


def put(module: nn.Module, name: str, tensor: Tensor) -> None:
    """Replace a parameter or buffer by one of another shape; a frozen parameter stays frozen."""
    if name in module._buffers:
        module._buffers[name] = tensor
        return
    before = module._parameters[name]
    module._parameters[name] = nn.Parameter(tensor, requires_grad=before is None or before.requires_grad)


def _mean(tensor: Tensor) -> Tensor:
    is_counter = not (tensor.is_floating_point() or tensor.is_complex())
    return tensor.amax(0) if is_counter else tensor.mean(0)


OURS = ("plain_type", "where", "theirs", "members", "routed", "rank", "init", "rows_at")


def reborn(module: nn.Module, kind: type[nn.Module], without: Collection[str] = (), **attributes: Any) -> nn.Module:
    """`module` as another class: the same tensors, settings and hooks, in containers of its own.

    What `module.compile()` made is left out, as in a deep copy: it would keep answering for `module`.

    Args:
        module: left as it is.
        kind: the other class.
        without: names of attributes that are not taken over.
        **attributes: further attributes to set.
    """
    twin = kind.__new__(kind)
    without = {*without, "_compiled_call_impl"}
    state = {k: v.copy() if isinstance(v, dict) else v for k, v in vars(module).items() if k not in without}
    twin.__dict__.update(state | attributes)
    return twin
