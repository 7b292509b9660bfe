"""What may have happened to a network since it was converted: layers replaced, pruned, or sharded over processes."""

from collections.abc import Collection

from torch import Tensor, nn

from batchensemble.nn.layers.member import member_modules
from batchensemble.nn.routing.layer_input import title


def refuse_changed(net: nn.Module) -> None:
    """Refuse to add, drop, extract or store members if a layer's tensors are not its own, before anything is done."""
    for layer, module in member_modules(net):
        held = {**module._parameters, **module._buffers}
        for own in ("weight", *module.stacked):
            tensor = getattr(module, own, None)
            if own not in held and tensor is not None:
                raise RuntimeError(
                    f"{title(module)} was pruned or parametrised after convert: its {own!r} is computed from "
                    "other tensors. Make it a parameter again first, with "
                    "torch.nn.utils.prune.remove or torch.nn.utils.parametrize.remove_parametrizations."
                )
            if tensor is not None:
                refuse_sharded(f"{layer}.{own}".removeprefix("."), tensor)


def refuse_sharded(name: str, tensor: Tensor) -> None:
    """Refuse a tensor of which only a part is in this process."""
    if _is_sharded(tensor):
        raise ValueError(
            f"{name} is sharded over several processes: gather the state_dict "
            "(torch.distributed.checkpoint.state_dict) and load it into an ensemble that is not"
        )


def why_it_fails(net: nn.Module, error: Exception, converted: Collection[str]) -> str:
    """Say what was done to a network that can no longer answer; empty if that is not known.

    Args:
        net: the network.
        error: what it raised.
        converted: names of the layers that had members when it was converted.
    """
    synced = [name for name, module in net.named_modules() if isinstance(module, nn.SyncBatchNorm)]
    if lost := [name for name in synced if name in converted]:
        return (
            f"layer '{lost[0]}' had a norm for every member, and SyncBatchNorm.convert_sync_batchnorm has put one "
            "without members in its place: leave the norms of norm='member' as they are, or convert with norm='shared'"
        )
    if "DTensor" in str(error) and any(_is_sharded(parameter) for parameter in net.parameters()):
        return (
            "the weights are sharded, and FSDP gathers them for `model(...)` only: tell it of every other method that "
            "is called, register_fsdp_forward_method(model, 'members'), and so for 'predict'"
        )
    return ""


def _is_sharded(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")  # torch's DTensor, whose package is slow to import
