"""Does it work on your network? Every member against its extracted plain network, on your data."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode

from batchensemble.ensemble import Ensemble, check_ensemble, twin_of
from batchensemble.nn.conversion import fast_path
from batchensemble.nn.conversion.changed import refuse_changed
from batchensemble.nn.layers.member import MemberModule, converted_layers, own_tensors, put_
from batchensemble.nn.layers.norm import MemberNorm
from batchensemble.nn.trees import tensors

_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3, torch.bfloat16: 1e-1, torch.float16: 2e-2}


class VerificationError(RuntimeError):
    """A member does not answer as its plain network does."""


@torch.no_grad()
def verify(model: Ensemble, *args: Any, **kwargs: Any) -> float:
    """Compare every member with its extracted plain network; raise, and name the first layer that differs.

    A converted layer expects rows on the batch axis. If a network moves them elsewhere and the sizes happen to fit,
    answers are wrong without any error: this is the test for that. Members that are still alike, as with
    `init="ones"`, would hide such a mistake, and so would a weight that starts at zero, at the end of a residual branch
    say: both get other values, in a copy that shares everything else. Converted layers that no row reached are named in
    a warning: their members cannot differ.

    Args:
        model: the ensemble.
        *args: inputs of the network: one row or more; one alone cannot show rows that change places. With as many rows
            as members, each member is also asked for a row of its own, in one batch with the others.
        **kwargs: its keyword inputs.

    Returns:
        The largest difference found, relative to the largest output. Up to 1e-3 in float32 (1e-8 in float64, 2e-2 in
        float16, 1e-1 in bfloat16) it counts as rounding.

    Raises:
        VerificationError: a member differs from its plain network.
        ValueError: the inputs have no rows, or the answers no finite number other than zero.

    Examples:
        >>> import batchensemble as be
        >>> be.verify(be.convert(nn.Linear(4, 3), members=2), torch.randn(5, 4)) < 1e-6
        True
    """
    check_ensemble(model)
    if model.edge.rows(args, kwargs) == 0:
        raise ValueError("there are no rows to verify the members on: give at least one, better one for each member")
    refuse_changed(model.net)
    model = twin_of(getattr(model, "_orig_mod", model)).eval()  # others may be asking the model itself meanwhile
    _reveal_(model.net)
    with fast_path.off_everywhere():
        outputs = model.members(*args, **kwargs)
        worst = 0.0
        for member in range(len(model)):
            plain = model.extract(member).eval()
            answer = plain(*args, **kwargs)
            worst = max(worst, _compare(model, plain, member, outputs, answer, (args, kwargs)))
        _check_ids(model, outputs, args, kwargs)
        unreached = _unreached(model, args, kwargs)
    if unreached:
        warnings.warn(
            f"no row reached the converted layers {unreached}. The network may do without them here (a head that only "
            "training asks). If it calls them where convert cannot see it, in a lambda for one, it calls plain layers "
            "that no member changes: call them as attributes of the network.",
            stacklevel=3,
        )
    return worst


def _reveal_(net: nn.Module) -> None:
    """Change what would hide a mistake: signs of members that are alike, and weights too close to zero to show any."""
    generator = torch.Generator().manual_seed(0)
    for module in net.modules():
        stacked = module.stacked if isinstance(module, MemberModule) else ()
        for name, parameter in module.named_parameters(recurse=False):
            if "bias" not in name and _lets_nothing_through(parameter):
                put_(module, name, _signs(parameter, generator) * _usual_size(parameter))
            elif name in stacked:
                put_(module, name, parameter * _signs(parameter, generator).where(_alike(parameter), 1))


def _signs(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Random signs in the shape and dtype of a tensor; they cost what they multiply no precision."""
    return (1 - 2 * torch.randint(2, tensor.shape, generator=generator, device=generator.device)).to(tensor)


def _lets_nothing_through(weight: Tensor) -> bool:
    """Whether a weight is so small that what it multiplies would hardly show in an answer, until it is trained."""
    can_grow = weight.requires_grad and weight.numel() > 0 and not weight.is_meta
    return can_grow and bool(weight.abs().amax() < 1e-3)


def _usual_size(weight: Tensor) -> float:
    """One over the root of a row's length, which keeps the size of what the weight multiplies."""
    return (max(1, len(weight)) / weight.numel()) ** 0.5 if weight.ndim else 1.0


def _alike(rows: Tensor) -> Tensor:
    """Where members differ by less than a tenth: had a row reached the wrong one, its answer would hardly show it."""
    return ((rows - rows[:1]).abs() <= 0.1 * rows.abs()).all(0)


def _compare(model: Ensemble, plain: nn.Module, member: int, outputs: Any, answer: Any, inputs: Any) -> float:
    """The largest difference between a member's part of the outputs and its plain network's answer."""
    pairs = _answers_of(member, outputs, answer)
    expected = [expected for _, expected in pairs]
    if not any(bool((tensor.isfinite() & (tensor != 0)).any()) for tensor in expected):
        raise ValueError(
            f"member {member} answers with zeros only, or with no finite number: there is nothing to compare"
        )
    worst = max(_difference(*pair) for pair in pairs)
    if not worst <= _tolerance(expected, plain):
        _refuse_random(plain, answer, *inputs)
        _refuse_rows_that_meet(model.net, shared=True)
        layer = _first_difference(model, plain, member, *inputs)
        unreached = _unreached(model, *inputs)
        reads = f"the weights of {unreached} itself, which no row reached," if unreached else "a layer's weight itself,"
        raise VerificationError(
            f"member {member} differs from its extracted plain network {_by_how_much(pairs, worst)}, "
            f"first in layer '{layer}'. If the network moves its rows away from axis {model.settings.batch_dim} there, "
            f"exclude that layer or set batch_dim; if it reads {reads} exclude {'them' if unreached else 'that one'}; "
            "if rows meet or change places before it, ask one member at a time: model(x, member=i)."
        )
    return worst


def _answers_of(member: int, outputs: Any, answer: Any) -> list[tuple[Tensor, Tensor]]:
    """A member's tensors beside those of its plain network."""
    found, expected = tensors(outputs), tensors(answer)
    if len(found) != len(expected):
        raise VerificationError(
            f"the network returns {len(expected)} tensors for one member's rows and {len(found)} for all members': a "
            "list with an entry for every row has no axis of members. Return the rows in one tensor, or ask one member "
            "at a time: model(x, member=i)."
        )
    # A tensor without rows (the network's own loss) is common to all members, and no member's answer.
    pairs = [pair for pair in zip(found, expected, strict=True) if pair[0].ndim > pair[1].ndim]
    return [(_member_of(every, own, member), own) for every, own in pairs]


def _by_how_much(pairs: list[tuple[Tensor, Tensor]], worst: float) -> str:
    """The largest difference in words, or the first shape that is another."""
    for found, expected in pairs:
        if found.shape != expected.shape:
            return f"in shape, {tuple(found.shape)} instead of {tuple(expected.shape)}"
    return f"by {worst:.2g} of the output's size"


def _refuse_random(plain: nn.Module, answer: Any, args: Any, kwargs: Any) -> None:
    """Say so if a plain network does not even answer as it did itself."""
    again = plain(*args, **kwargs)
    for found, expected in zip(tensors(again), tensors(answer), strict=False):
        if not _difference(found, expected) <= _tolerance([expected], plain):
            raise VerificationError(
                "the network answers the same rows differently from one call to the next, also without members: it "
                "draws random numbers in evaluation. Verify it without (F.dropout takes training=self.training), or "
                "with the noise as an input."
            )


def _refuse_rows_that_meet(net: nn.Module, shared: bool) -> None:
    """Name the batch norms without running statistics, or only shared ones: a row's answer depends on the others."""
    norms = [
        name
        for name, module in net.named_modules()
        if isinstance(module, _BatchNorm) and module.running_mean is None
        if not (shared and isinstance(module, MemberNorm))
    ]
    if norms:
        raise VerificationError(
            f"the batch norms {norms} have no running statistics (track_running_stats=False), so in evaluation, too, a "
            "row's answer depends on the rows beside it, and members answer otherwise where their rows come with "
            f"{'those of other members' if shared else 'others'}. Give these norms running statistics"
            f"{', convert with norm=' + repr('member') if shared else ''}, or ask one member at a time: "
            "model(x, member=i)."
        )


def _check_ids(model: Ensemble, outputs: Any, args: Any, kwargs: Any) -> None:
    """Check that rows with member ids get those members' answers."""
    rows = model.edge.rows(args, kwargs)
    ids = torch.arange(rows, device=model.edge.first(args, kwargs).device) % len(model)
    answer = model(*args, member=ids, **kwargs)
    for mixed, every in zip(tensors(answer), tensors(outputs), strict=True):
        # There are several such axes if a state has as many layers as there are rows: one of them holds the rows.
        axes = [axis for axis, size in enumerate(mixed.shape) if size == rows and every.ndim == mixed.ndim + 1]
        chosen = [_of_ids(every, ids, axis) for axis in axes]
        if axes and not any(_difference(mixed, expected) <= _tolerance([expected], model) for expected in chosen):
            _refuse_rows_that_meet(model.net, shared=False)
            raise VerificationError("rows with member ids of their own are not answered by the layers of those members")


def _of_ids(every: Tensor, ids: Tensor, axis: int) -> Tensor:
    """Each row's answer by its own member, from all members' answers `(members, ...)`, each with its rows on `axis`."""
    return every.movedim(axis + 1, 1)[ids, torch.arange(len(ids), device=ids.device)].movedim(0, axis)


def _unreached(model: Ensemble, args: Any, kwargs: Any) -> list[str]:
    """Converted layers none of whose per-member tensors was read in a pass."""
    with torch.compiler.set_stance("force_eager"), _Reading() as reading:
        model.members(*args, **kwargs)
    layers = {name: model.net.get_submodule(name) for name in converted_layers(model.net)}
    own = {name: {id(tensor) for tensor in own_tensors(layer).values()} for name, layer in layers.items()}
    return [name for name, tensors in own.items() if tensors and not tensors & reading.seen]


class _Reading(TorchFunctionMode):
    """Records what torch's functions are given. Hooks would not see a layer whose `forward` is called directly."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.update(id(tensor) for tensor in tensors((args, kwargs)))
        return func(*args, **(kwargs or {}))


def _first_difference(model: Ensemble, plain: nn.Module, member: int, args: Any, kwargs: Any) -> str:
    """The first layer, in the order of the plain network's pass, whose output differs."""
    ours = _recorded(model.net, lambda: model.members(*args, **kwargs))
    theirs = _recorded(plain, lambda: plain(*args, **kwargs))
    for name, expected in theirs.items():
        if name in ours:
            found = _member_of(ours[name], expected, member)
            if not _difference(found, expected) <= _tolerance([expected], plain):
                return name or "(root)"
    return "(outside any layer)"


def _recorded(net: nn.Module, run: Callable[[], Any]) -> dict[str, Tensor]:
    """The first tensor that each module returned when it was first called."""
    seen: dict[str, Tensor] = {}
    handles = []
    for name, module in net.named_modules():

        def keep(_m: nn.Module, _i: Any, output: Any, name: str = name) -> None:
            is_packed = isinstance(output, tuple) and len(output) == 2 and isinstance(output[0], PackedSequence)
            found = tensors(output[1] if is_packed else output)  # packed rows of all members are sorted by length
            if found and name not in seen:
                seen[name] = found[0].detach()

        handles.append(module.register_forward_hook(keep))
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return seen


def _member_of(found: Tensor, expected: Tensor, member: int) -> Tensor:
    """Member i's part of a tensor: an entry of an explicit member axis, or a block of the one axis that is longer."""
    if found.shape == expected.shape:
        return found
    if found.ndim == expected.ndim + 1:
        return found[member]
    if found.ndim != expected.ndim:
        return found
    longer = [axis for axis in range(found.ndim) if found.shape[axis] != expected.shape[axis]]
    if len(longer) != 1:
        return found
    size = expected.shape[longer[0]]
    return found.narrow(longer[0], min(member * size, found.shape[longer[0]] - size), size)


def _difference(found: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the largest value; infinite for other shapes."""
    if found.shape != expected.shape:
        return float("inf")
    if not expected.numel():
        return 0.0
    if not (expected.is_floating_point() or expected.is_complex()):
        return float(not torch.equal(found, expected))
    found, expected = (tensor.to(torch.promote_types(tensor.dtype, torch.float64)) for tensor in (found, expected))
    finite = expected.isfinite()
    if not torch.equal(found.isfinite(), finite) or not found[~finite].allclose(expected[~finite], equal_nan=True):
        return float("inf")
    if not bool(finite.any()):
        return 0.0
    difference, largest = (tensor[finite].abs().amax() for tensor in (found - expected, expected))
    return float(difference / largest) if difference else 0.0


def _tolerance(expected: list[Tensor], net: nn.Module) -> float:
    """What rounding may come to: answers of type float32 may have been computed in bfloat16."""
    return max((_TOLERANCE.get(t.dtype.to_real(), 0.0) for t in [*expected, *net.parameters()]), default=0.0)
