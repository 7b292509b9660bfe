"""The two ways to get an ensemble: convert a network, or load a file."""

import inspect
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from batchensemble import files
from batchensemble.ensemble.axis import Edge
from batchensemble.ensemble.ensemble import Ensemble
from batchensemble.ensemble.settings import Settings
from batchensemble.ensemble.signature import with_member
from batchensemble.nn.conversion.convert import convert_
from batchensemble.nn.conversion.selection import Rule
from batchensemble.nn.init import Init
from batchensemble.nn.integers import as_integer, check_count
from batchensemble.nn.layers.member import MemberModule
from batchensemble.nn.layers.norm import Norm
from batchensemble.prediction import Combine, check_combine


def convert(
    net: nn.Module,
    members: int,
    *,
    include: Rule = None,
    exclude: Rule = None,
    init: Init = "sign",
    norm: Norm = "shared",
    rank: int = 1,
    combine: Combine = "softmax",
    class_dim: int = -1,
    output: str | int | None = None,
    fan_out: str | None = None,
    batch_dim: int = 0,
    shared_inputs: str | Iterable[str] = (),
    copy: bool = True,
    generator: torch.Generator | None = None,
) -> Ensemble:
    """Turn any network into an ensemble whose members share its weights: member i has `W ∘ s_i r_iᵀ`.

    Args:
        net: the network, pre-trained or not; its weights are kept.
        members: how many members.
        include: which layers: glob patterns on module names (a container's name selects what is in it), or a
            predicate `(name, module) -> bool`. By default every layer with a rank-one form, except embeddings and
            tied weights, which are converted only when named.
        exclude: layers to leave plain, in the same form as `include`.
        init: how fast weights start: "sign" (random signs, the paper's), "normal" (N(1, 0.5)), "ones" (every member
            is `net`), "first" (r drawn from N(1, 0.5) in the first converted layer, ones elsewhere). A number in
            brackets changes the chance of +1 or the spread: "sign(0.9)", "normal(0.1)".
        norm: "shared" norms, or one per "member".
            Use "member" when training a network with batch norms from scratch.
        rank: components of the fast matrix, `W ∘ sum_j s_j r_jᵀ`.
        combine: how members become one answer in `eval()`: "softmax", "sigmoid", "mean", "vote", a callable on the
            `(members, N, ...)` outputs, or `None` (no common answer).
        class_dim: the axis of the classes in the network's output.
        output: the field of a structured output that is combined, by name or by position; by default `logits`, else
            the first tensor.
        fan_out: name of the module where one copy of the batch becomes `members` copies; the input by default.
        batch_dim: the axis that holds the rows, counted from the first.
        shared_inputs: names of arguments that carry no rows (a causal mask).
        copy: leave `net` untouched; `False` converts it in place. Build the optimiser afterwards in either case: an
            older one does not know the members' parameters.
        generator: source of random fast weights.

    Examples:
        >>> net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        >>> model = convert(net, members=4).eval()
        >>> x = torch.randn(5, 4)
        >>> model(x).shape, model.members(x).shape, model(x, member=2).shape
        (torch.Size([5, 3]), torch.Size([4, 5, 3]), torch.Size([5, 3]))
    """
    _check_network(net)
    check_combine(combine)
    rows_at, classes_at = _checked_axes(batch_dim, class_dim)
    if any(isinstance(module, MemberModule) for module in net.modules()):
        raise ValueError("the network holds batchensemble layers already; convert the plain network")
    shared = (shared_inputs,) if isinstance(shared_inputs, str) else tuple(shared_inputs)
    signature = inspect.signature(net.forward)
    with_member(signature)  # raises before anything is changed, and so does the next one
    Edge.of(signature, rows_at, shared)
    rank = check_count("rank", rank)
    settings = Settings(
        init=init,
        norm=norm,
        rank=rank,
        combine=combine,
        class_dim=classes_at,
        output=output,
        fan_out=fan_out,
        batch_dim=rows_at,
        shared_inputs=shared,
    )
    body, conversion = convert_(
        _copied(net) if copy else net,
        members,
        include=include,
        exclude=exclude,
        init=init,
        norm=norm,
        rank=rank,
        fan_out=fan_out,
        generator=generator,
    )
    return Ensemble(body, settings, conversion)


def _check_network(net: Any) -> None:
    if isinstance(net, type) and issubclass(net, nn.Module):
        raise TypeError(f"expected a network, got the class {net.__name__}: make one of it first")
    if not isinstance(net, nn.Module):
        raise TypeError(f"expected a network, a torch.nn.Module, got {type(net).__name__}")
    for name, part in net.named_modules():
        if isinstance(part, torch.jit.ScriptModule) and (part is net or any(True for _ in part.parameters())):
            raise TypeError(
                f"expected a network in Python, got TorchScript{f' in {name!r}' if name else ''}, whose layers cannot "
                "be replaced, nor copied: make the network of its class, and give it the weights, "
                "net.load_state_dict(script.state_dict())"
            )


def _checked_axes(batch_dim: object, class_dim: object) -> tuple[int, int]:
    rows_at, classes_at = as_integer(batch_dim), as_integer(class_dim)
    if rows_at is None or rows_at < 0:
        raise ValueError(f"batch_dim is the number of an axis, counted from the first: 0, 1, ...; got {batch_dim!r}")
    if classes_at is None:
        raise ValueError(f"class_dim is the number of an axis: 1, -1, ...; got {class_dim!r}")
    return rows_at, classes_at


def _copied(net: nn.Module) -> nn.Module:
    try:
        return deepcopy(net)
    except RuntimeError as error:
        if "deepcopy" not in str(error):
            raise
        raise ValueError(
            "the network holds a tensor that was computed with gradients, as pruning and torch's older weight_norm do, "
            "and torch cannot copy it: remove it (torch.nn.utils.prune.remove), or convert in place with copy=False"
        ) from error


def load(path: str | Path, net: nn.Module, combine: Combine | Literal["stored"] = "stored") -> Ensemble:
    """Read an ensemble into a copy of the network that it was made from.

    Args:
        path: a file written by `Ensemble.save`.
        net: the plain network: its class, sizes, dtype and mode (training or evaluation) count, not its weights.
        combine: "stored" takes what the file says; give a rule if the ensemble was saved with a callable, which no file
            can hold.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "model.safetensors")
        >>> convert(nn.Linear(4, 3), members=2).save(path)
        >>> len(load(path, nn.Linear(4, 3)))
        2
    """
    _check_network(net)
    if any(tensor.is_meta for tensor in [*net.parameters(), *net.buffers()]):
        raise ValueError("the network is on the meta device, where nothing can be loaded: make it on a real one")
    tensors, header = files.read(path, "ensemble")
    settings = header["settings"]
    if combine != "stored":
        settings["combine"] = combine
    elif isinstance(settings["combine"], dict):
        rule = settings["combine"]["callable"]
        raise ValueError(f"{path} was saved with a combine of your own, which no file holds: load(..., combine={rule})")
    chosen = set(header["converted"])
    if missing := chosen - {name for name, _ in net.named_modules(remove_duplicate=False)}:
        raise ValueError(f"{path} does not fit this network: only the file has a layer {min(missing)!r}")
    unseen = torch.Generator()  # its values are all replaced below, and the caller's random state stays as it is
    model = convert(net, header["members"], include=lambda name, _: name in chosen, generator=unseen, **settings)
    files.check_fit(path, tensors, files.distinct_state(model.net))
    model.net.load_state_dict(tensors, strict=False)
    return model
