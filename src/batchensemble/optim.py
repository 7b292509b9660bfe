"""Training an ensemble: parameter groups, frozen weights, the mean of members' losses, a penalty, a schedule."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.nn.layers.member import MemberModule
from batchensemble.nn.rank_one import RankOne

_NORMS = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)


def parameter_groups(
    model: nn.Module,
    lr: float,
    weight_decay: float,
    fast_lr_scale: float = 1.0,
    fast_weight_decay: float = 0.0,
) -> list[dict[str, Any]]:
    """Group slow weights, fast weights, and norms and biases for any optimiser; every parameter is in one group.

    Decay would pull r and s, and with them the members, towards zero, so it is off for them by default. Norms and
    biases are never decayed. Those are the parameters of torch's norms and of modules with "norm" in the name of their
    class, parameters with "bias" in their own name, and all others with at most one axis.

    Args:
        model: an ensemble, or any network.
        lr: learning rate.
        weight_decay: weight decay of the slow weights, `W`.
        fast_lr_scale: `lr` times this is the learning rate of the fast weights, r and s (0.5 is the authors' released
            choice on CIFAR).
        fast_weight_decay: weight decay of r and s.

    Examples:
        >>> import batchensemble as be
        >>> model = be.convert(nn.Linear(4, 3), members=2)
        >>> [group["name"] for group in parameter_groups(model, lr=0.1, weight_decay=1e-4)]
        ['slow', 'fast', 'norm and bias']
    """
    rates = {
        "lr": lr,
        "weight_decay": weight_decay,
        "fast_lr_scale": fast_lr_scale,
        "fast_weight_decay": fast_weight_decay,
    }
    for name, rate in rates.items():
        if not rate >= 0:  # NaN, too; torch's optimisers check their own arguments, not those of groups
            raise ValueError(f"{name} must not be negative, got {rate}")
    kinds: dict[str, list[nn.Parameter]] = {"slow": [], "fast": [], "norm and bias": []}
    seen: set[int] = set()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                kinds[_kind(module, name, parameter)].append(parameter)
    options = {
        "slow": {"lr": lr, "weight_decay": weight_decay},
        "fast": {"lr": lr * fast_lr_scale, "weight_decay": fast_weight_decay},
        "norm and bias": {"lr": lr, "weight_decay": 0.0},
    }
    return [{"params": params, "name": name, **options[name]} for name, params in kinds.items() if params]


def _kind(module: nn.Module, name: str, parameter: nn.Parameter) -> str:
    if isinstance(module, MemberModule) and name in module.fast_weights:
        return "fast"
    is_norm = isinstance(module, _NORMS) or "norm" in type(module).__name__.lower()
    return "norm and bias" if is_norm or "bias" in name or parameter.ndim < 2 else "slow"


def freeze_shared_(model: nn.Module) -> None:
    """Freeze what members share: from now on only their own r, s, biases and norms are trained.

    Statistics of shared batch norms are not parameters: put such norms into `eval()`, or training still updates them.

    Args:
        model: an ensemble, changed in place. Create its optimiser afterwards.

    Examples:
        >>> import batchensemble as be
        >>> model = be.convert(nn.Linear(4, 2), members=2)
        >>> freeze_shared_(model)
        >>> [name for name, parameter in model.named_parameters() if parameter.requires_grad]
        ['net.bias', 'net.r', 'net.s']
    """
    for module in model.modules():
        own = module.stacked if isinstance(module, MemberModule) else ()
        for name, parameter in module.named_parameters(recurse=False):
            if name not in own:
                parameter.requires_grad_(False)


def mean_loss(loss_fn: Callable[..., Tensor], outputs: Tensor, *targets: Any, **options: Any) -> Tensor:
    """The mean of the members' losses, each on its own answer; never the loss of the mean answer.

    Args:
        loss_fn: a loss for one network, such as `torch.nn.functional.cross_entropy`.
        outputs: `(members, N, ...)`, from `model.members(x)`.
        *targets: what else the loss takes, the same for every member.
        **options: its keyword arguments.

    Examples:
        >>> mean_loss(torch.nn.functional.mse_loss, torch.tensor([[0.0], [2.0]]), torch.tensor([1.0]))
        tensor(1.)
    """
    if not callable(loss_fn):
        raise TypeError(f"the loss comes first, mean_loss(loss_fn, model.members(x), y), got {type(loss_fn).__name__}")
    if not isinstance(outputs, Tensor):
        kind = type(outputs).__name__
        raise TypeError(
            f"expected members' outputs in one tensor, got {kind}: name it, as model.members(x).logits; for a loss of "
            "several outputs, repeat the rows and name their members, model(torch.cat([x] * members), member=ids)"
        )
    _check_member_axis(outputs, targets[0] if targets else options.get("target"))
    return torch.stack([loss_fn(output, *targets, **options) for output in outputs]).mean()


def _check_member_axis(outputs: Tensor, target: Any) -> None:
    """Refuse `model(x)` in place of `model.members(x)`: a loss that broadcasts would take its rows for members."""
    if not isinstance(target, Tensor):
        return
    one_for_each = outputs.shape == target.shape
    several_for_each = outputs.shape[:-1] == target.shape != outputs.shape[1:]  # logits, or a mean and a variance
    # Members' answers have such shapes, too, where there are as many rows as members, with as many targets each, and
    # several outputs for a target.
    may_be_members = outputs.shape[1:2] == target.shape[:1] and outputs.shape[-1:] != (1,)
    if one_for_each or (several_for_each and not may_be_members):
        raise ValueError(
            "expected the answers of every member, (members, N, ...), as model.members(x) gives them; "
            f"got outputs {tuple(outputs.shape)} for targets {tuple(target.shape)}: one answer for each row"
        )


def mean_weight_penalty(model: nn.Module) -> Tensor:
    """`sum_layers ||W ∘ mean_i(s_i r_iᵀ)||^2`, the paper's other regulariser; no member's weight is built.

    Examples:
        >>> import batchensemble as be
        >>> model = be.convert(nn.Linear(4, 3), members=2, init="ones")
        >>> bool(mean_weight_penalty(model) == model.net.weight.square().sum())
        True
    """
    layers = [module for module in model.modules() if isinstance(module, RankOne)]
    if not layers:
        raise ValueError("the model has no converted layer whose weight could be penalised: make it by be.convert")
    return torch.stack([layer.mean_weight().abs().square().sum() for layer in layers]).sum()


def half_cosine(done: float) -> float:
    """Half a cosine, from one to zero, by the share of the training that is done: a factor of learning rates.

    Examples:
        >>> [round(half_cosine(share), 2) for share in (0, 0.5, 1)]
        [1.0, 0.5, 0.0]
    """
    return 0.5 * (1 + math.cos(math.pi * done))


class Diverged(ArithmeticError):
    """A training's loss is no longer finite."""
