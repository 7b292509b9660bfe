"""What an ensemble is made of, and what it costs in parameters."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile, groupby

from torch import Tensor

from batchensemble.ensemble import Ensemble, check_ensemble
from batchensemble.nn.layers.member import MemberModule, converted_layers, member_modules
from batchensemble.nn.layers.shared_norm import SharedBatchNorm

EQUAL = "Every member still equals the network that was converted."
DIFFERENT = "Members differ from the network that was converted; init='ones' would start them equal to it."
MIXED = "Batch norms shared by members: {}. In training from scratch, norm='member' gives each member its own."
UNKNOWN = (
    "Whether members equal the network that was converted cannot be known on the meta device, which holds no values."
)
SCREEN = 24  # lines; a longer table groups its layers
_NUMBERED = re.compile(r"(.*?)(\d+)(?=\.|$)")  # up to the first part of a name that ends in a number: model.layers.12


@dataclass(frozen=True, repr=False)
class Summary:
    """The layers and parameters of an ensemble; prints as a table.

    Attributes:
        members: number of members.
        converted: names of the converted layers.
        left: every other layer that has parameters, and why it is plain.
        answer: what `model(x)` is in evaluation mode.
        parameters: number of parameters of the whole ensemble.
        network: number of parameters of one plain network.
        preserved: whether every member is still the network that was converted (r = s = 1, the same biases); `None`
            if that cannot be known, since parameters are on the meta device.
        shared_batch_norms: how many batch norms mix the members' statistics: those behind the first layer with members.
    """

    members: int
    converted: tuple[str, ...]
    left: Mapping[str, str]
    answer: str
    parameters: int
    network: int
    preserved: bool | None
    shared_batch_norms: int

    @property
    def overhead(self) -> float:
        """Parameters over those of one network, minus one: 0.05 is five per cent more."""
        return self.parameters / self.network - 1

    @property
    def naive_share(self) -> float:
        """Parameters over those of as many separate networks."""
        return self.parameters / (self.network * self.members)

    def __repr__(self) -> str:
        layers = [(name or "(root)", "converted") for name in self.converted]
        layers += [(name or "(root)", f"plain: {reason}") for name, reason in self.left.items()]
        layers = list(_grouped(layers)) if len(layers) > SCREEN else layers
        width = max(len(name) for name, _ in layers)
        lines = [f"BatchEnsemble of {self.members} members"]
        lines += [f"  {name:<{width}}  {state}" for name, state in layers]
        lines.append(
            f"{self.parameters:,} parameters: {self.overhead:+.2%} over one network of {self.network:,}, "
            f"{self.naive_share:.1%} of {self.members} separate ones"
        )
        lines.append(f"An answer in eval(): {self.answer}")
        if self.shared_batch_norms and not self.preserved:
            lines.append(MIXED.format(self.shared_batch_norms))
        lines.append({True: EQUAL, False: DIFFERENT, None: UNKNOWN}[self.preserved])
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
        An answer in eval(): log-probabilities over axis -1
        Members differ from the network that was converted; init='ones' would start them equal to it.
    """
    check_ensemble(model)
    total = sum(parameter.numel() for parameter in model.parameters())
    converted = converted_layers(model.net)
    return Summary(
        members=len(model),
        converted=converted,
        left=_left(model, converted),
        answer=model.settings.answer,
        parameters=total,
        network=total - _extra(model),
        preserved=_preserved(model),
        shared_batch_norms=_mixed(model),
    )


def _extra(model: Ensemble) -> int:
    """The number of parameters that one plain network would not have."""
    extra = 0
    for _, module in member_modules(model.net):
        parameters = dict(module.named_parameters(recurse=False))
        for name, tensor in module.stacked_tensors():
            if name in module.fast_weights:
                extra += tensor.numel()
            elif name in parameters:
                extra += tensor.numel() - tensor[0].numel()
    return extra


def _left(model: Ensemble, converted: Collection[str]) -> dict[str, str]:
    """Why the other layers are plain, including those with which the user has replaced converted ones."""
    there = {name for name, _ in model.net.named_modules(remove_duplicate=False)} - {*converted}
    reasons = {**dict.fromkeys(model.conversion.converted, "replaced after convert"), **model.conversion.left}
    return {name: reason for name, reason in reasons.items() if name in there}


def _preserved(model: Ensemble) -> bool | None:
    """Whether every fast matrix is all ones, and whatever else members own is the same for all."""
    owned = [(module, *named) for _, module in member_modules(model.net) for named in module.stacked_tensors()]
    known = all(
        _is_one(tensor, name) if name in module.fast_weights else bool((tensor == tensor[:1]).all())
        for module, name, tensor in owned
        if not tensor.is_meta
    )
    return None if known and any(tensor.is_meta for *_, tensor in owned) else known


def _mixed(model: Ensemble) -> int:
    """How many shared batch norms come after a layer with members, in the order of registration."""
    modules = dropwhile(lambda module: not isinstance(module, MemberModule), model.net.modules())
    return sum(isinstance(module, SharedBatchNorm) for module in modules)


def _is_one(fast: Tensor, side: str) -> bool:
    if fast.ndim == 2:
        return bool((fast == 1).all())
    first = bool((fast[:, 0] == 1).all())
    return first and (side == "r" or not bool(fast[:, 1:].any()))  # components with s = 0 add nothing


def _grouped(layers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Join layers in the same state whose names agree up to the first number.

    Examples:
        >>> list(_grouped((name, "plain") for name in ("h.0.q", "h.0.v", "h.1.q", "h.1.v", "out")))
        [('h.0-1', '2 layers each, plain'), ('out', 'plain')]
    """
    groups: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for name, state in layers:
        found = _NUMBERED.match(name)
        before, number = (found[1], int(found[2])) if found else (name, 0)
        groups.setdefault((before, state), []).append((name, number))
    for (before, state), group in groups.items():
        counts = Counter(number for _, number in group)
        each = set(counts.values())
        if len(group) == 1:
            yield group[0][0], state
        elif len(counts) > 1 and len(each) == 1 and each != {1}:
            yield f"{before}{_ranges(counts)}", f"{each.pop()} layers each, {state}"
        else:
            yield f"{before}{_ranges(counts)}", f"{len(group)} layers, {state}"


def _ranges(numbers: Iterable[int]) -> str:
    """Numbers in short.

    Examples:
        >>> _ranges([0, 1, 2, 5])
        '0-2, 5'
    """
    runs = [
        [number for _, number in run] for _, run in groupby(enumerate(sorted(numbers)), lambda item: item[1] - item[0])
    ]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
