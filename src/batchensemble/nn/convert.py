"""Swap a network's layers for their ensembled forms, in place, and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin

from batchensemble.nn import attention, embedding, fast_path, layers, norm, recurrent, shared_norm
from batchensemble.nn.converted import OURS, Converted, Pick
from batchensemble.nn.init import Fast, Init
from batchensemble.nn.member import MemberModule
from batchensemble.nn.norm import Norm
from batchensemble.nn.selection import Rule, Selection
from batchensemble.nn.swap import swap_
from batchensemble.nn.transformers import Conv1D, declare_untied_, is_conv1d

_LAYERS: dict[type[nn.Module], Any] = {
    kind: getattr(home, kind.__name__)
    for home, kinds in {
        layers: (
            nn.Linear,
            nn.Conv1d,
            nn.Conv2d,
            nn.Conv3d,
            nn.ConvTranspose1d,
            nn.ConvTranspose2d,
            nn.ConvTranspose3d,
        ),
        attention: (nn.MultiheadAttention,),
        recurrent: (nn.LSTM, nn.GRU),
        embedding: (nn.Embedding,),
        norm: (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm),
    }.items()
    for kind in kinds
}
_NORMS = (norm.BatchNorm, norm.LayerNorm, norm.GroupNorm)


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
    selection = Selection(net, include, exclude, fan_out)
    swaps: dict[nn.Module, nn.Module] = {}
    left: dict[str, str] = {}
    for name, module in selection.candidates(_is_layer, _is_whole):
        target, reason = _target(module, norm)
        reason = reason or selection.refusal(name, module)
        if reason:
            left[name] = reason
            continue
        swaps[module] = _ensembled(target, name, module, fast)
        if not issubclass(target, (*_NORMS, embedding.Embedding)):  # these have no r that could be the first
            fast = fast.behind_first()
    if not swaps:
        raise ValueError(f"nothing was selected that can be converted; left as they are: {left or 'no layers at all'}")
    net = swap_(net, {**_shared_norms(net), **swaps})
    fast_path.off_(net)
    names = {id(module): name for name, module in selection.names()}
    return net, Conversion(tuple(names[id(module)] for module in swaps), left)


def _shared_norms(net: nn.Module) -> dict[nn.Module, nn.Module]:
    """Batch norms that stay shared, in the form that trains best beside members."""
    kinds: dict[type[nn.Module], Any] = {
        nn.BatchNorm1d: shared_norm.BatchNorm1d,
        nn.BatchNorm2d: shared_norm.BatchNorm2d,
        nn.BatchNorm3d: shared_norm.BatchNorm3d,
    }
    return {module: kinds[type(module)].around(module) for module in net.modules() if type(module) in kinds}


def _ensembled(target: Any, name: str, module: nn.Module, fast: Fast) -> Converted:
    layer = target.ensembled(module, fast.members if issubclass(target, _NORMS) else fast)
    for inner, part in layer.named_modules():
        if isinstance(part, Converted):
            part.where = f"{name}.{inner}" if inner else name
            part.routed = True
    return layer  # type: ignore[no-any-return]


def _target(module: nn.Module, norm_mode: Norm) -> tuple[Any, str]:
    """The class that ensembles `module`, or why there is none."""
    if isinstance(module, LazyModuleMixin):
        return None, "its weights do not exist yet: run a batch through the network first"
    if is_conv1d(module):
        return Conv1D, ""
    for kind, target in _LAYERS.items():
        if isinstance(module, kind):
            if _computes_otherwise(module, kind):
                return None, f"{type(module).__name__} has a forward of its own"
            return target, _computed(module) or _norm_refusal(target, norm_mode) or _name_refusal(module, kind, target)
    own = ", ".join(name for name, _ in module.named_parameters(recurse=False)) if any(module.children()) else ""
    return None, f"there is no rank-one form of {type(module).__name__}" + (f"'s own {own}" if own else "")


def _name_refusal(module: nn.Module, kind: type[nn.Module], target: type[nn.Module]) -> str:
    """Why a subclass cannot have members: it has something of its own under a name that we use."""
    tensors = {*module._parameters, *module._buffers, *module._modules}
    methods = set(dir(type(module))) - set(dir(kind))
    fast_weights = target.fast_weights if issubclass(target, MemberModule) else ()
    ours = {*fast_weights, *dir(target)} - set(dir(kind))
    taken = (set(vars(module)) & (ours - set(OURS))) | ((tensors | methods) & {*ours, *OURS})
    return f"it has {min(taken)!r} of its own, a name that members use" if taken else ""


def _computes_otherwise(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether a subclass, or this one object, replaces what torch's layer computes."""
    steps = [name for name in ("forward", "_conv_forward") if hasattr(kind, name)]
    return any(getattr(type(module), name) is not getattr(kind, name) or name in vars(module) for name in steps)


def _computed(module: nn.Module) -> str:
    computed = any(_is_computed(part) for part in module.modules())
    return "its weight is computed from other parameters" if computed else ""


def _is_computed(module: nn.Module) -> bool:
    """Whether a module is parametrised, pruned, or under torch's older weight and spectral norms."""
    names = getattr(module, "_flat_weights_names", ("weight", "bias", "in_proj_weight", "in_proj_bias"))
    tensors = {name: getattr(module, name, None) for name in names}
    return nn.utils.parametrize.is_parametrized(module) or any(
        isinstance(tensor, Tensor) and tensor is not module._parameters.get(name) for name, tensor in tensors.items()
    )


def _norm_refusal(target: Any, norm_mode: Norm) -> str:
    return "norm='shared'" if norm_mode == "shared" and issubclass(target, _NORMS) else ""


def _is_layer(module: nn.Module) -> bool:
    """Whether a module's kind has a member form, with or without parameters (a norm may have statistics only)."""
    return isinstance(module, tuple(_LAYERS))


def _is_whole(module: nn.Module) -> bool:
    """Whether a module is converted as a whole, whatever is inside it."""
    return isinstance(module, nn.MultiheadAttention | nn.RNNBase)


def restore_(net: nn.Module, pick: Pick) -> nn.Module:
    """Turn `net`, in place, into the plain network of one member, or of the mean weight."""
    swaps: dict[nn.Module, nn.Module] = {}
    inside: set[int] = set()
    for module in net.modules():
        if isinstance(module, Converted) and id(module) not in inside:
            inside.update(id(part) for part in module.modules())
            swaps[module] = module.plain(pick)
    net = swap_(net, swaps)
    fast_path.on_(net)
    declare_untied_(net, [module for module in swaps if isinstance(module, MemberModule)])
    return net
