"""An ensemble around any network: rows are dealt, routed or repeated, and members' answers combined."""

import copy
import inspect
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from batchensemble import files
from batchensemble.axis import Edge, Field
from batchensemble.nn import fan_out as fans
from batchensemble.nn.convert import Conversion, convert_, member_modules, restore_
from batchensemble.nn.ids import checked_owner
from batchensemble.nn.init import Init
from batchensemble.nn.member import MemberModule, Pick
from batchensemble.nn.route import Route, current, travel
from batchensemble.nn.selection import Rule
from batchensemble.prediction import Combine, Prediction, check_combine, combine_outputs


@dataclass(frozen=True)
class Settings:
    """What `convert` was told, apart from the layers chosen; see there."""

    init: Init = "sign"
    norm: str = "shared"
    rank: int = 1
    combine: Combine = "softmax"
    class_dim: int = -1
    output: str | None = None
    fan_out: str | None = None
    batch_dim: int = 0
    shared_inputs: tuple[str, ...] = ()


def convert(
    net: nn.Module,
    members: int,
    *,
    include: Rule = None,
    exclude: Rule = None,
    init: Init = "sign",
    norm: str = "shared",
    rank: int = 1,
    combine: Combine = "softmax",
    class_dim: int = -1,
    output: str | None = None,
    fan_out: str | None = None,
    batch_dim: int = 0,
    shared_inputs: Iterable[str] = (),
    copy: bool = True,
    generator: torch.Generator | None = None,
) -> "Ensemble":
    """Make any network an ensemble whose members share its weights: member i has `W o s_i r_i^T`.

    Args:
        net: the network, pre-trained or not; its weights are kept.
        members: how many members.
        include: which layers: glob patterns on module names (a container's name selects what is in it), or a
            predicate `(name, module) -> bool`. By default every layer with a rank-one form, except embeddings and
            tied weights, which are converted only when named.
        exclude: which layers not; likewise.
        init: how fast weights start: "sign" (random signs, the paper's), "normal" (N(1, 0.5)), "ones" (every member
            is `net`), "first" (r drawn from N(1, 0.5) in the first converted layer, ones elsewhere). A number in
            brackets changes the chance of +1 or the spread: "sign(0.9)", "normal(0.1)".
        norm: "shared" norms, or one per "member".
        rank: components of the fast matrix, `W o sum_j s_j r_j^T`.
        combine: how members become one answer in `eval()`: "softmax", "sigmoid", "mean", "vote", a callable on the
            `(members, N, ...)` outputs, or `None` (no common answer).
        class_dim: the axis of the classes in the network's output.
        output: the field of a structured output that is combined; `logits`, else the first tensor.
        fan_out: name of the module where one copy of the batch becomes `members` copies; the input by default.
        batch_dim: the axis that holds the rows.
        shared_inputs: names of arguments that carry no rows (a causal mask).
        copy: leave `net` untouched; `False` converts it in place.
        generator: where random fast weights come from.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        >>> model = convert(net, members=4).eval()
        >>> x = torch.randn(5, 4)
        >>> model(x).shape, model.members(x).shape, model(x, member=2).shape
        (torch.Size([5, 3]), torch.Size([4, 5, 3]), torch.Size([5, 3]))
    """
    check_combine(combine)
    if any(isinstance(module, MemberModule) for module in net.modules()):
        raise ValueError("the network holds batchensemble layers already; convert the plain network")
    settings = Settings(init, norm, rank, combine, class_dim, output, fan_out, batch_dim, tuple(shared_inputs))
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


def _copied(net: nn.Module) -> nn.Module:
    return copy.deepcopy(net)


class Ensemble(nn.Module):
    """Members that share one network. Made by `convert`, or read by `load`.

    In training `model(x)` deals the rows over the members; in evaluation all members answer every row and are
    combined. `member=` names one member for all rows, or one for each.

    Attributes:
        net: the network, its layers converted.
        settings: what `convert` was told.
        conversion: which layers were converted, and why others were not.
    """

    def __init__(self, net: nn.Module, settings: Settings, conversion: Conversion) -> None:
        super().__init__()
        self.net, self.settings, self.conversion = net, settings, conversion
        if settings.fan_out is not None:
            fans.install_(net, settings.fan_out)
        self.train(net.training)
        self._count = member_modules(net)[0][1].members
        self._warned = False
        self._sign()

    def _sign(self) -> None:
        """Give `forward` the network's own signature, plus `member`: export and Trainer read it."""
        signature, self._edge = _signature_and_edge(self.net, self.settings)

        def forward(*args: Any, **kwargs: Any) -> Any:
            return self._answer(*args, **kwargs)

        forward.__signature__ = signature  # type: ignore[attr-defined]
        self.__dict__["forward"] = forward

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "forward"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._sign()

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return True

    def extra_repr(self) -> str:
        """What print shows."""
        return f"members={len(self)}, combine={self.settings.combine!r}"

    # ---- answering -----------------------------------------------------------------------------------------------

    def _answer(self, *args: Any, member: Any = None, **kwargs: Any) -> Any:
        """The forward pass: dealt rows in training, all members combined in evaluation, or the members named."""
        if member is None and not self.training:
            return self._combined(self.members(*args, **kwargs))
        rows, device = self._edge.rows(args, kwargs)
        owner = self._dealt(rows, device) if member is None else checked_owner(member, rows, len(self), device)
        return self._travel(self._route(rows, owner), args, kwargs)

    def members(self, *args: Any, **kwargs: Any) -> Any:
        """Every member on every row: each tensor of the output as `(members, N, ...)`; differentiable."""
        rows, _ = self._edge.rows(args, kwargs)
        late = self.settings.fan_out is not None
        # A single row would broadcast over a torn residual unseen, so behind a late fan-out it travels as two.
        sent = 2 if late and rows == 1 else rows
        if sent != rows:
            args, kwargs = self._edge.repeat(2, rows, args, kwargs)
        if not late:
            args, kwargs = self._edge.repeat(len(self), rows, args, kwargs)
        route = self._route(sent if late else sent * len(self), None, copies=len(self) if late else 1)
        output = self._travel(route, args, kwargs)
        if not self._edge.has_rows(Field.find(output, self.settings.output).get(output), sent * len(self)):
            raise ValueError(f"the network's answer does not hold the {sent * len(self)} rows of {len(self)} members")
        return self._edge.unfold(output, len(self), sent, keep=rows if sent != rows else None)

    def predict(self, *args: Any, batch_size: int | None = None, **kwargs: Any) -> Prediction:
        """All members' answers and their uncertainty, without gradients, in evaluation mode.

        Args:
            *args: the network's inputs.
            batch_size: rows per pass; all at once by default.
            **kwargs: the network's keyword inputs.
        """
        rows, _ = self._edge.rows(args, kwargs)
        size = max(1, rows) if batch_size is None else batch_size
        if size < 1:
            raise ValueError(f"batch_size must be positive, got {batch_size}")
        mode = self.training
        self.eval()
        try:
            with torch.no_grad():
                outputs = [self._piece(rows, start, size, args, kwargs) for start in range(0, max(1, rows), size)]
        finally:
            self.train(mode)
        return Prediction(torch.cat(outputs, 1), self.settings.combine, self._class_dim(outputs[0].ndim - 1))

    def _piece(self, rows: int, start: int, size: int, args: Sequence[Any], kwargs: Any) -> Tensor:
        """Members' answers `(members, n, ...)` for some of the rows."""
        axis, size = self.settings.batch_dim, min(size, rows - start)
        some, named = self._edge.map_rows(lambda tensor: tensor.narrow(axis, start, size), rows, args, kwargs)
        output = self.members(*some, **named)
        return Field.find(output, self.settings.output).get(output).movedim(axis + 1, 1)

    def _combined(self, output: Any) -> Any:
        """One answer from all members in the combined field; the others keep their member axis."""
        if self.settings.combine is None:
            raise ValueError("combine=None: these members have no common answer; name one with member=")
        field, axis = Field.find(output, self.settings.output), self.settings.batch_dim
        outputs = field.get(output).movedim(axis + 1, 1)  # (members, N, ...)
        answer = combine_outputs(outputs, self.settings.combine, self._class_dim(outputs.ndim - 1))
        return field.put(output, answer.movedim(0, axis) if axis else answer)

    def _class_dim(self, ndim: int) -> int:
        """The class axis once the rows have moved to the front of a member's output."""
        axis, rows = self.settings.class_dim, self.settings.batch_dim
        if rows == 0 or not -ndim <= axis < ndim:
            return axis
        axis %= ndim
        if axis == rows:
            return 0
        return axis + 1 if axis < rows else axis

    def _dealt(self, rows: int, device: torch.device) -> Tensor | None:
        """Row n of N goes to member `n * members // N`; equal blocks need no ids."""
        members = len(self)
        if rows < members and not self._warned:
            self._warned = True
            warnings.warn(
                f"a batch of {rows} rows for {members} members: some of them never train; use larger batches, "
                "or be.mean_loss over model.members(x)",
                stacklevel=4,
            )
        if rows % members == 0:
            return None
        return torch.arange(rows, device=device) * members // rows

    def _route(self, rows: int, owner: int | Tensor | None, copies: int = 1) -> Route:
        return Route(len(self), rows, owner, self.settings.batch_dim, self.settings.fan_out, copies)

    def _travel(self, route: Route, args: Sequence[Any], kwargs: Any) -> Any:
        return travel(route, self._through, args, kwargs)

    def _through(self, args: Sequence[Any], kwargs: Any) -> Any:
        if self.settings.fan_out is None:
            return self.net(*args, **kwargs)
        try:
            output = self.net(*args, **kwargs)
        except RuntimeError as error:
            raise RuntimeError(f"the network cannot be cut at fan_out={self.settings.fan_out!r}: {error}") from error
        route = current()
        if route is not None and route.fan_out is not None:
            raise RuntimeError(f"the network never called fan_out={self.settings.fan_out!r}")
        return output

    # ---- members come and go -------------------------------------------------------------------------------------

    def extract(self, member: int) -> nn.Module:
        """Member i as a plain network: the original class and keys, `W o s_i r_i^T` folded in."""
        self._check_index(member)
        return self._restored(member)

    def extract_mean(self) -> nn.Module:
        """The plain network with the mean weight, `W o mean_i(s_i r_i^T)`; biases and norms are means, too."""
        return self._restored(None)

    def _restored(self, pick: Pick) -> nn.Module:
        net = copy.deepcopy(self.net)
        fans.remove_(net)
        return restore_(net, pick)

    def add_members(self, count: int, like: int | None = None, generator: torch.Generator | None = None) -> Self:
        """Grow by `count` members; those that are there answer as before. Rebuild optimisers afterwards.

        Args:
            count: how many.
            like: copy this member; by default r and s start as in `convert`, biases and norms at the members' mean.
            generator: where random fast weights come from.
        """
        if count < 1:
            raise ValueError(f"count must be positive, got {count}")
        if like is not None:
            self._check_index(like)
        for _, module in member_modules(self.net):
            module.grow_(count, like, generator)
        self._recount()
        return self

    def keep_members(self, indices: Sequence[int]) -> Self:
        """Shrink to these members, in this order. Rebuild optimisers afterwards."""
        indices = list(indices)
        if not indices:
            raise ValueError("an ensemble needs at least one member to keep")
        for index in indices:
            self._check_index(index)
        for _, module in member_modules(self.net):
            module.keep_(indices)
        self._recount()
        return self

    def _recount(self) -> None:
        self._count = member_modules(self.net)[0][1].members
        for module in self.net.modules():
            if hasattr(module, "members"):
                module.members = self._count

    def _check_index(self, member: int) -> None:
        if not 0 <= member < len(self):
            raise IndexError(f"member must lie in [0, {len(self)}), got {member}")

    # ---- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """The whole ensemble as one safetensors file; read it back with `batchensemble.load`."""
        settings = asdict(self.settings)
        if callable(self.settings.combine):
            settings["combine"] = {"callable": getattr(self.settings.combine, "__name__", "a rule")}
        header = {"members": len(self), "settings": settings, "converted": list(self.conversion.converted)}
        files.write(path, "ensemble", files.distinct_state(self.net), header)

    def save_member(self, member: int, path: str | Path) -> None:
        """One member's own tensors, and the fingerprint of everything that its answers share with the others."""
        self._check_index(member)
        tensors = {
            f"{layer}.{name}".removeprefix("."): tensor[member]
            for layer, module in member_modules(self.net)
            for name, tensor in module.stacked_tensors()
        }
        files.write(path, "member", tensors, {"fingerprints": files.fingerprints(self.net)})

    @torch.no_grad()
    def load_member(self, path: str | Path) -> int:
        """Add the member of a file; returns its index. Refused where the shared weights are others."""
        tensors, header = files.read(path, "member")
        own = files.fingerprints(self.net)
        for layer in [*own, *header["fingerprints"]]:
            if own.get(layer) != header["fingerprints"].get(layer):
                raise ValueError(
                    f"{path} was saved with other shared weights: they differ first in layer '{layer}'. "
                    "A member's file only fits the network that it was trained on."
                )
        targets = {
            f"{layer}.{name}".removeprefix("."): tensor
            for layer, module in member_modules(self.net)
            for name, tensor in module.stacked_tensors()
        }
        _check_fit(path, tensors, {name: tensor.shape[1:] for name, tensor in targets.items()})
        self.add_members(1, like=0)
        for layer, module in member_modules(self.net):
            for name, tensor in module.stacked_tensors():
                tensor[-1].copy_(tensors[f"{layer}.{name}".removeprefix(".")])
        return len(self) - 1

    # ---- passing for the network ---------------------------------------------------------------------------------

    @property
    def config(self) -> Any:
        """The network's own config (Transformers)."""
        return self.net.config

    @property
    def device(self) -> torch.device:
        """Where the network's parameters are."""
        return next(self.net.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the network's parameters."""
        return next(self.net.parameters()).dtype


_STORED: Any = object()


def load(path: str | Path, net: nn.Module, combine: Combine = _STORED) -> Ensemble:
    """Read an ensemble into a copy of the network that it was made from.

    Args:
        path: a file by `Ensemble.save`.
        net: the plain network: its class and sizes count, not its weights.
        combine: needed where the ensemble was saved with a callable, which no file can hold.
    """
    tensors, header = files.read(path, "ensemble")
    settings = header["settings"] | {"shared_inputs": tuple(header["settings"]["shared_inputs"])}
    if isinstance(settings["combine"], dict) and combine is _STORED:
        raise ValueError(f"{path} was saved with a combine of your own, {settings['combine']}: give it again")
    if combine is not _STORED:
        settings["combine"] = combine
    chosen = set(header["converted"])
    model = convert(net, header["members"], include=lambda name, _: name in chosen, **settings)
    _check_fit(path, tensors, {name: t.shape for name, t in files.distinct_state(model.net).items()})
    model.net.load_state_dict(tensors, strict=False)
    return model


def _check_fit(path: str | Path, found: dict[str, Tensor], expected: dict[str, torch.Size]) -> None:
    for name in sorted(found.keys() | expected.keys()):
        if name not in found or name not in expected:
            where = "the file" if name in found else "the network"
            raise ValueError(f"{path} does not fit this network: only {where} has {name}")
        if found[name].shape != expected[name]:
            raise ValueError(
                f"{path} does not fit this network: {name} is {tuple(found[name].shape)} in the file and "
                f"{tuple(expected[name])} in the network"
            )


def _signature_and_edge(net: nn.Module, settings: Settings) -> tuple[inspect.Signature, Edge]:
    """The network's signature with `member` added, and what it says about arguments."""
    signature = inspect.signature(net.forward)
    parameters = list(signature.parameters.values())
    if "member" in signature.parameters:
        raise ValueError("the network's forward has an argument called 'member', which an ensemble needs itself")
    names = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    member = inspect.Parameter("member", inspect.Parameter.KEYWORD_ONLY, default=None)
    last = len(parameters) - (1 if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD else 0)
    parameters.insert(last, member)
    unknown = set(settings.shared_inputs) - set(signature.parameters)
    if unknown and not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        raise ValueError(f"shared_inputs names {sorted(unknown)}, which the network does not take: {list(names)}")
    return signature.replace(parameters=parameters), Edge(settings.batch_dim, names, settings.shared_inputs)
