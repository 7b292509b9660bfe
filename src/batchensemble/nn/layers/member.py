"""The bases of modules that have members: some of their tensors have one row per member."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from batchensemble.nn.init import Fast, Init
from batchensemble.nn.layers.converted import Converted, Pick, outermost


class FastModule(Converted):
    """A module with fast weights: built with a torch module's own arguments, or around a plain one.

    Args:
        *args: the torch module's own arguments.
        members: how many members share the weights.
        rank: components of the fast matrix, `sum_j s_j r_jᵀ`.
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
        self.add_fast_weights_(fast)

    @classmethod
    def ensembled(cls, module: nn.Module, fast: Fast) -> Self:
        """Build the module around a plain one, and keep its weights."""
        layer = cls.around(module)
        layer.add_fast_weights_(fast)
        return layer

    def add_fast_weights_(self, fast: Fast) -> None:
        """Add members to a module that has been plain so far."""
        raise NotImplementedError


class MemberModule(Converted):
    """A module without children whose `stacked` tensors have one row per member; everything else in it is shared.

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
                put_(self, name, tensor.detach().expand(self.members, *tensor.shape).clone())

    def reset_parameters(self) -> None:
        """Draw all values anew: shared tensors by torch's own rule, r and s by `init`, equal biases for all members."""
        plain: Any = super()
        plain.reset_parameters()
        if "members" in vars(self):  # torch's constructor calls this, too
            self.start_members_()

    @torch.no_grad()
    def start_members_(self) -> None:
        """Draw r and s anew, and copy all else that members own from the first one."""
        fresh = self.fresh(self.members, None)
        for name, tensor in self.stacked_tensors():
            tensor.copy_(fresh.get(name, tensor[:1].clone()))

    @torch.no_grad()
    def keep_(self, indices: Sequence[int]) -> None:
        """Keep only these members, in this order."""
        for name, tensor in self.stacked_tensors():
            put_(self, name, tensor[list(indices)])
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
            put_(self, name, torch.cat([tensor, rows]))
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
            put_(module, name, tensor.detach().clone())
        return module


def member_modules(net: nn.Module) -> list[tuple[str, MemberModule]]:
    """All modules that hold members' own tensors, with their names."""
    return [(name, module) for name, module in net.named_modules() if isinstance(module, MemberModule)]


def own_tensors(net: nn.Module) -> dict[str, Tensor]:
    """Every tensor in a network that has a row per member, by its name there: r, s, and members' biases and norms."""
    return {
        f"{layer}.{name}".removeprefix("."): tensor
        for layer, module in member_modules(net)
        for name, tensor in module.stacked_tensors()
    }


def converted_layers(net: nn.Module) -> tuple[str, ...]:
    """Names of the layers that have members; an attention layer counts as one, its projections do not.

    Examples:
        >>> from batchensemble.nn import Linear
        >>> converted_layers(nn.Sequential(nn.Linear(2, 2), Linear(2, 2, members=3)))
        ('1',)
    """
    return tuple(name for name, _ in outermost(net, FastModule, MemberModule))


def put_(module: nn.Module, name: str, tensor: Tensor) -> None:
    """Replace a parameter or buffer by one of another shape; a frozen parameter stays frozen."""
    if name in module._buffers:
        module._buffers[name] = tensor
        return
    before = module._parameters[name]
    module._parameters[name] = nn.Parameter(tensor, requires_grad=before is None or before.requires_grad)


def _mean(tensor: Tensor) -> Tensor:
    is_counter = not (tensor.is_floating_point() or tensor.is_complex())
    return tensor.amax(0) if is_counter else tensor.mean(0)
