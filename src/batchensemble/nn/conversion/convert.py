"""Swap a network's layers for their ensembled forms, in place, and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from batchensemble.nn.conversion import fast_path
from batchensemble.nn.conversion.kinds import kind_with_members, shared_layers
from batchensemble.nn.conversion.selection import Rule, Selection, tied_modules
from batchensemble.nn.conversion.swap import swap_
from batchensemble.nn.init import Fast, Init
from batchensemble.nn.layers.converted import Converted, Pick, mark_routed_, outermost
from batchensemble.nn.layers.embedding import Embedding
from batchensemble.nn.layers.norm import MemberNorm, Norm
from batchensemble.nn.layers.transformers import declare_untied_


@dataclass(frozen=True)
class Conversion:
    """What was done to a network: names of the converted layers, and why the others were left plain."""

    converted: tuple[str, ...]
    left: Mapping[str, str]


def convert_(
    net: nn.Module,
    members: int,
    *,
    include: Rule = None,
    exclude: Rule = None,
    init: Init = "sign",
    norm: Norm = "shared",
    rank: int = 1,
    fan_out: str | None = None,
    generator: torch.Generator | None = None,
) -> tuple[nn.Module, Conversion]:
    """Replace the chosen layers of `net` in place; returns the network (another object if it is itself a layer).

    The arguments are those of `batchensemble.convert`.

    Examples:
        >>> net, done = convert_(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), members=2)
        >>> done.converted
        ('0', '2')
    """
    fast = Fast(members, rank, init, generator)
    if norm not in get_args(Norm):
        raise ValueError(f"norm must be 'shared' or 'member', got {norm!r}")
    _refuse_lazy(net)
    selection = Selection(net, include, exclude, fan_out)
    swaps: dict[nn.Module, nn.Module] = {}
    converted: list[str] = []
    left: dict[str, str] = {}
    for name, module in selection.candidates():
        kind, reason = kind_with_members(module, norm)
        reason = reason or selection.refusal(module)
        if reason:
            left[name] = reason
            continue
        swaps[module] = mark_routed_(kind.ensembled(module, fast), name)
        converted.append(name)
        if not issubclass(kind, MemberNorm | Embedding):  # these have no r that could be the first
            fast = fast.after_first()
    if not swaps:
        why = f"left as they are: {left}" if left else "the network has no layers at all that could have members"
        raise ValueError(f"nothing was selected that can be converted; {why}")
    net = swap_(net, {**shared_layers(net), **swaps})
    fast_path.off_(net)
    return net, Conversion(tuple(converted), left)


def _refuse_lazy(net: nn.Module) -> None:
    """Refuse layers without weights: left plain, they would turn up later, as layers that all members share."""
    lazy = [name for name, module in net.named_modules() if _waits_for_a_batch(module)]
    if lazy:
        raise ValueError(
            f"the weights of the lazy layers {lazy} do not exist yet: run a batch through the network first"
        )


def _waits_for_a_batch(module: nn.Module) -> bool:
    """Whether a layer is lazy still: its hook for the first batch is gone afterwards, its class need not be."""
    return isinstance(module, LazyModuleMixin) and hasattr(module, "_initialize_hook")


def restore_(net: nn.Module, pick: Pick) -> nn.Module:
    """Turn `net`, in place, into the plain network of one member, or of the mean weight."""
    swaps: dict[nn.Module, nn.Module] = {module: module.plain(pick) for _, module in outermost(net, Converted)}
    tied = len(tied_modules(net))
    net = swap_(net, swaps)
    fast_path.on_(net)
    if len(tied_modules(net)) < tied:  # one of them was folded
        declare_untied_(net)
    return net
