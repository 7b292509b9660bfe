"""What an ensemble is made of, and what it costs in parameters."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from torch import Tensor

from batchensemble.ensemble import Ensemble, check_ensemble
from batchensemble.nn.member import converted_layers, member_modules

EQUAL = "Every member still equals the network that was converted."
DIFFERENT = "Members differ from the network that was converted; init='ones' would start them equal to it."


@dataclass(frozen=True, repr=False)
class Summary:
    """The layers and parameters of an ensemble; prints as a table.

    Attributes:
        members: number of members.
        converted: names of the converted layers.
        left: every other layer that has parameters, and why it is plain.
        parameters: number of parameters of the whole ensemble.
        network: number of parameters of one plain network.
        preserved: whether every member is still the network that was converted (r = s = 1, the same biases).
    """

    members: int
    converted: tuple[str, ...]
    left: Mapping[str, str]
    parameters: int
    network: int
    preserved: bool

    @property
    def overhead(self) -> float:
        """Parameters over those of one network, minus one: 0.05 is five per cent more."""
        return self.parameters / self.network - 1

    @property
    def naive_share(self) -> float:
        """Parameters over those of as many separate networks."""
        return self.parameters / (self.network * self.members)

    def __repr__(self) -> str:
        layers = dict.fromkeys(self.converted, "converted")
        layers |= {name: f"plain: {reason}" for name, reason in self.left.items()}
        width = max(len(name or "(root)") for name in layers)
        lines = [f"BatchEnsemble of {self.members} members"]
        lines += [f"  {name or '(root)':<{width}}  {state}" for name, state in layers.items()]
        lines.append(
            f"{self.parameters:,} parameters: {self.overhead:+.2%} over one network of {self.network:,}, "
            f"{self.naive_share:.1%} of {self.members} separate ones"
        )
        lines.append(EQUAL if self.preserved else DIFFERENT)
        return "\n".join(lines)


def summary(model: Ensemble) -> Summary:
    """List what was converted, what was left plain and why, and what it costs.

    Examples:
        >>> from torch import nn
        >>> from batchensemble import convert
        >>> print(summary(convert(nn.Sequential(nn.Linear(9, 9), nn.LayerNorm(9)), members=2)))
        BatchEnsemble of 2 members
          0  converted
          1  plain: norm='shared'
        153 parameters: +41.67% over one network of 108, 70.8% of 2 separate ones
        Members differ from the network that was converted; init='ones' would start them equal to it.
    """
    check_ensemble(model)
    total = sum(parameter.numel() for parameter in model.parameters())
    extra = 0
    for _, module in member_modules(model.net):
        parameters = dict(module.named_parameters(recurse=False))
        for name, tensor in module.stacked_tensors():
            if name in module.fast_weights:
                extra += tensor.numel()
            elif name in parameters:
                extra += tensor.numel() - tensor[0].numel()
    converted = converted_layers(model.net)
    return Summary(len(model), converted, _left(model, converted), total, total - extra, _preserved(model))


def _left(model: Ensemble, converted: Collection[str]) -> dict[str, str]:
    """Why the other layers are plain, including those with which the user has replaced converted ones."""
    there = {name for name, _ in model.net.named_modules(remove_duplicate=False)} - {*converted}
    reasons = {**dict.fromkeys(model.conversion.converted, "replaced after convert"), **model.conversion.left}
    return {name: reason for name, reason in reasons.items() if name in there}


def _preserved(model: Ensemble) -> bool:
    """Whether every fast matrix is all ones, and whatever else members own is the same for all."""
    return all(
        _is_one(tensor, name) if name in module.fast_weights else bool((tensor == tensor[:1]).all())
        for _, module in member_modules(model.net)
        for name, tensor in module.stacked_tensors()
    )


def _is_one(fast: Tensor, side: str) -> bool:
    if fast.ndim == 2:
        return bool((fast == 1).all())
    first = bool((fast[:, 0] == 1).all())
    return first and (side == "r" or not bool(fast[:, 1:].any()))  # components with s = 0 add nothing
