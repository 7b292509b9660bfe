"""Which layers can have members: the class that each kind of layer becomes, or the reason why a layer stays plain."""

from typing import Any

from torch import Tensor, nn

from batchensemble.nn.layers import convolutions, norm, shared_norm
from batchensemble.nn.layers.attention import MultiheadAttention
from batchensemble.nn.layers.bags import EmbeddingBag
from batchensemble.nn.layers.converted import OURS, mark_routed_
from batchensemble.nn.layers.embedding import Embedding
from batchensemble.nn.layers.linear import Linear
from batchensemble.nn.layers.member import MemberModule
from batchensemble.nn.layers.norm import MemberNorm, Norm
from batchensemble.nn.layers.recurrent import GRU, LSTM
from batchensemble.nn.layers.transformers import Conv1D, is_conv1d

_WITH_MEMBERS: dict[type[nn.Module], Any] = {
    nn.Linear: Linear,
    nn.Conv1d: convolutions.Conv1d,
    nn.Conv2d: convolutions.Conv2d,
    nn.Conv3d: convolutions.Conv3d,
    nn.ConvTranspose1d: convolutions.ConvTranspose1d,
    nn.ConvTranspose2d: convolutions.ConvTranspose2d,
    nn.ConvTranspose3d: convolutions.ConvTranspose3d,
    nn.MultiheadAttention: MultiheadAttention,
    nn.LSTM: LSTM,
    nn.GRU: GRU,
    nn.Embedding: Embedding,
    nn.BatchNorm1d: norm.BatchNorm1d,
    nn.BatchNorm2d: norm.BatchNorm2d,
    nn.BatchNorm3d: norm.BatchNorm3d,
    nn.LayerNorm: norm.LayerNorm,
    nn.RMSNorm: norm.RMSNorm,
    nn.GroupNorm: norm.GroupNorm,
}
_SHARED: dict[type[nn.Module], Any] = {
    nn.BatchNorm1d: shared_norm.BatchNorm1d,
    nn.BatchNorm2d: shared_norm.BatchNorm2d,
    nn.BatchNorm3d: shared_norm.BatchNorm3d,
}


def is_layer(module: nn.Module) -> bool:
    """Whether a module's kind has a form with members; it may be without parameters (a norm with statistics only)."""
    return isinstance(module, tuple(_WITH_MEMBERS))


def is_whole(module: nn.Module) -> bool:
    """Whether a module is converted as a whole, whatever is inside it."""
    return isinstance(module, nn.MultiheadAttention | nn.RNNBase)


def kind_with_members(module: nn.Module, norm: Norm) -> tuple[Any, str]:
    """The class that gives `module` members, and why it cannot or should not have them; empty if it can.

    Examples:
        >>> kind_with_members(nn.Linear(2, 3), norm="shared")
        (<class 'batchensemble.nn.layers.linear.Linear'>, '')
        >>> kind_with_members(nn.PReLU(), norm="shared")
        (None, 'there is no rank-one form of PReLU')
        >>> kind_with_members(nn.InstanceNorm1d(2, affine=True), norm="member")
        (None, 'there is no form of InstanceNorm1d with members')
    """
    if is_conv1d(module):
        return Conv1D, ""
    for plain, kind in _WITH_MEMBERS.items():
        if isinstance(module, plain):
            if _computes_otherwise(module, plain):
                return None, f"{type(module).__name__} has a forward of its own"
            if any(_is_computed(part) for part in module.modules()):
                return kind, "its weight is computed from other parameters"
            if norm == "shared" and issubclass(kind, MemberNorm):
                return kind, "norm='shared'"
            return kind, _name_refusal(module, plain, kind)
    return None, _no_form(module)


def _no_form(module: nn.Module) -> str:
    name = type(module).__name__
    own = ", ".join(name for name, _ in module.named_parameters(recurse=False))
    if any(module.children()):
        return f"there is no rank-one form of {name}'s own {own}"
    if "norm" in name.lower():
        return f"there is no form of {name} with members"
    return f"there is no rank-one form of {name}"


def shared_layers(net: nn.Module) -> dict[nn.Module, nn.Module]:
    """Batch norms and bags that all members share, each with the form that it takes inside an ensemble."""
    found = [(name, module, _shared_kind(module)) for name, module in net.named_modules()]
    return {module: mark_routed_(kind.around(module), name) for name, module, kind in found if kind is not None}


def _shared_kind(module: nn.Module) -> Any:
    """The form that all members share, or `None`; only bags have one for subclasses."""
    if isinstance(module, nn.EmbeddingBag) and not _computes_otherwise(module, nn.EmbeddingBag):
        return EmbeddingBag
    return _SHARED.get(type(module))


def _computes_otherwise(module: nn.Module, plain: type[nn.Module]) -> bool:
    """Whether a subclass, or this one object, replaces what torch's layer computes."""
    steps = [name for name in ("forward", "_conv_forward") if hasattr(plain, name)]
    return any(getattr(type(module), name) is not getattr(plain, name) or name in vars(module) for name in steps)


def _is_computed(module: nn.Module) -> bool:
    """Whether a module is parametrised, pruned, or under torch's older weight and spectral norms."""
    names = getattr(module, "_flat_weights_names", ("weight", "bias", "in_proj_weight", "in_proj_bias"))
    tensors = {name: getattr(module, name, None) for name in names}
    return nn.utils.parametrize.is_parametrized(module) or any(
        isinstance(tensor, Tensor) and tensor is not module._parameters.get(name) for name, tensor in tensors.items()
    )


def _name_refusal(module: nn.Module, plain: type[nn.Module], kind: type[nn.Module]) -> str:
    """Why a subclass cannot have members: it has something of its own under a name that we use."""
    tensors = {*module._parameters, *module._buffers, *module._modules}
    methods = set(dir(type(module))) - set(dir(plain))
    fast_weights = kind.fast_weights if issubclass(kind, MemberModule) else ()
    ours = {*fast_weights, *dir(kind)} - set(dir(plain))
    settings = set(vars(module)) - set(OURS)  # `Converted.around` makes way for settings that are called as ours
    taken = ((tensors | methods) & {*ours, *OURS}) | (settings & ours)
    return f"it has {min(taken)!r} of its own, a name that members use" if taken else ""
