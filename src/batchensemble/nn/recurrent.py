"""LSTM and GRU for members: the weights are folded and every member makes one fused call.

A recurrent kernel takes one weight for its whole batch, so rows that chose their members go member by member.
"""

from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from batchensemble.nn.init import Fast, Init
from batchensemble.nn.layers import Linear, linear_of
from batchensemble.nn.member import Converted, Pick, reborn
from batchensemble.nn.route import rows_of

_HOOKS = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)
Hidden = Any  # a tensor (GRU) or a pair of tensors (LSTM), each (layers * directions, rows, size)


class Recurrent(Converted):
    """What LSTM and GRU share. Every weight `weight_ih_l0` of torch's is a `batchensemble.nn.Linear` `ih_l0` here."""

    recurrent_type: ClassVar[type[nn.RNNBase]]
    members: int
    batch_first: bool
    training: bool

    def __init__(
        self,
        *args: Any,
        members: int,
        rank: int = 1,
        init: Init = "sign",
        generator: torch.Generator | None = None,
        **kwargs: Any,
    ) -> None:
        fast = Fast(members, rank, init, generator)
        super().__init__()
        self._replace(self.recurrent_type(*args, **kwargs), fast)

    @classmethod
    def ensembled(cls, module: nn.Module, fast: Fast) -> Self:
        """The layer around a plain one, whose weights it keeps."""
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        layer._replace(module, fast)
        return layer

    def _replace(self, plain: Any, fast: Fast) -> None:
        self.members, self.plain_type, self.routed = fast.members, type(plain), False
        self.__dict__.update({name: vars(plain)[name].copy() for name in _HOOKS})
        self.train(plain.training)
        for name in (
            "input_size",
            "hidden_size",
            "num_layers",
            "bias",
            "batch_first",
            "dropout",
            "bidirectional",
        ):
            setattr(self, name, getattr(plain, name))
        self.proj_size = plain.proj_size
        self._flat = tuple(plain._flat_weights_names)
        for name in self._flat:
            kind, cell = name.split("_", 1)
            if kind == "weight":
                linear = linear_of(getattr(plain, name), getattr(plain, f"bias_{cell}", None))
                reads_input = cell.startswith("ih_l0")
                self.add_module(cell, Linear.ensembled(linear, fast if reads_input else fast.behind_first()))
        self._cell = (_bare(plain),)  # in a tuple: its empty weights are no parameters of ours

    def forward(self, input: Tensor | PackedSequence, hx: Hidden = None) -> tuple[Any, Hidden]:
        """As torch's, on batches: `(rows, length, features)` with `batch_first`, else `(length, rows, features)`."""
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if input.ndim != 3:
            raise ValueError(f"members need a batch: the input must have 3 axes, got shape {tuple(input.shape)}")
        return self._run(input, hx, None)

    def flatten_parameters(self) -> None:
        """Nothing: members' weights are folded anew in every call. Networks call it before their recurrent layers."""

    def _packed(self, x: PackedSequence, hx: Hidden) -> tuple[PackedSequence, Hidden]:
        padded, lengths = pad_packed_sequence(x, batch_first=self.batch_first)
        y, hidden = self._run(padded, hx, lengths)
        return _packed_like(y, lengths, x, axis=0 if self.batch_first else 1), hidden

    def _run(self, x: Tensor, hx: Hidden, lengths: Tensor | None) -> tuple[Tensor, Hidden]:
        axis = 0 if self.batch_first else 1
        rows = rows_of(self, x, axis)
        parts = rows.partition(x.shape[axis]) or [(0, slice(0, 0))]  # ids of no rows at all
        outputs, hiddens = [], []
        for member, mine in parts:
            y, hidden = self._member(member, _take(x, mine, axis), _take_hidden(hx, mine), _take_lengths(lengths, mine))
            outputs.append(y)
            hiddens.append(hidden)
        order = _order([mine for _, mine in parts])
        y = _merge(outputs, axis, order)
        if isinstance(hiddens[0], Tensor):
            return y, _merge(hiddens, 1, order)
        return y, tuple(_merge(list(states), 1, order) for states in zip(*hiddens, strict=True))

    def _member(self, member: int, x: Tensor, hx: Hidden, lengths: Tensor | None) -> tuple[Tensor, Hidden]:
        """One fused call with this member's weights."""
        cell = reborn(self._cell[0], self.recurrent_type, _flat_weights=self._folded(member), training=self.training)
        if lengths is None:
            y, hidden = cell(x, hx)
            return y, hidden
        packed, hidden = cell(pack_padded_sequence(x, lengths, self.batch_first, enforce_sorted=False), hx)
        total = x.shape[1 if self.batch_first else 0]
        return pad_packed_sequence(packed, self.batch_first, total_length=total)[0], hidden

    def _folded(self, pick: Pick) -> list[Tensor]:
        """The plain layer's weights and biases, for one member or the mean."""
        tensors = []
        for name in self._flat:
            kind, cell = name.split("_", 1)
            linear: Any = self._modules[cell]
            tensors.append(linear.unstacked(pick)[kind])
        return tensors

    @torch.no_grad()
    def plain(self, pick: Pick) -> nn.Module:
        """The plain recurrent layer of one member."""
        module = reborn(self._cell[0], self.plain_type, training=self.training)
        module.__dict__["_flat_weights"] = list(module._flat_weights)  # type: ignore[arg-type]
        module.__dict__.update({name: vars(self)[name].copy() for name in _HOOKS})
        for name, tensor in zip(self._flat, self._folded(pick), strict=True):
            kind, cell = name.split("_", 1)
            trains = getattr(self._modules[cell], kind).requires_grad
            setattr(module, name, nn.Parameter(tensor.detach().clone(), requires_grad=trains))
        return module


class LSTM(Recurrent):
    """`torch.nn.LSTM` for members: `(members * n, length, in)` with `batch_first`, to `(members * n, length, hidden)`.

    Every weight of torch's, such as `weight_ih_l0`, is a `batchensemble.nn.Linear` here, `ih_l0`, with its own r and s.

    Examples:
        >>> y, (h, c) = LSTM(4, 6, members=2, batch_first=True)(torch.randn(8, 5, 4))
        >>> y.shape, h.shape
        (torch.Size([8, 5, 6]), torch.Size([1, 8, 6]))
    """

    recurrent_type = nn.LSTM


class GRU(Recurrent):
    """`torch.nn.GRU` for members; shapes and weights as in `LSTM`.

    Examples:
        >>> y, h = GRU(4, 6, members=2, batch_first=True)(torch.randn(8, 5, 4))
        >>> y.shape, h.shape
        (torch.Size([8, 5, 6]), torch.Size([1, 8, 6]))
    """

    recurrent_type = nn.GRU


def _bare(plain: Any) -> nn.RNNBase:
    """A layer of the same settings, a subclass's own among them, whose weights are empty."""
    options: dict[str, Any] = {"proj_size": plain.proj_size} if isinstance(plain, nn.LSTM) else {}
    kind = nn.LSTM if isinstance(plain, nn.LSTM) else nn.GRU
    bare = kind(
        plain.input_size,
        plain.hidden_size,
        plain.num_layers,
        plain.bias,
        plain.batch_first,
        plain.dropout,
        plain.bidirectional,
        device="meta",
        **options,
    )
    bare.__dict__.update({name: value for name, value in vars(plain).items() if name not in vars(bare)})
    return bare


def _packed_like(y: Tensor, lengths: Tensor, x: PackedSequence, axis: int) -> PackedSequence:
    """`y` packed in the very order of `x`, as torch's layers do."""
    if x.sorted_indices is not None:
        y, lengths = y.index_select(axis, x.sorted_indices), lengths[x.sorted_indices.to(lengths.device)]
    packed = pack_padded_sequence(y, lengths, batch_first=axis == 0)
    return PackedSequence(packed.data, packed.batch_sizes, x.sorted_indices, x.unsorted_indices)


def _take(x: Tensor, mine: slice | Tensor, axis: int) -> Tensor:
    if isinstance(mine, Tensor):
        return x.index_select(axis, mine)
    return x.narrow(axis, mine.start, mine.stop - mine.start)


def _take_hidden(hx: Hidden, mine: slice | Tensor) -> Hidden:
    if hx is None or isinstance(hx, Tensor):
        return None if hx is None else _take(hx, mine, 1).contiguous()
    return tuple(_take(state, mine, 1).contiguous() for state in hx)


def _take_lengths(lengths: Tensor | None, mine: slice | Tensor) -> Tensor | None:
    if lengths is None:
        return None
    return lengths[mine.to(lengths.device) if isinstance(mine, Tensor) else mine]


def _order(parts: list[slice | Tensor]) -> Tensor | None:
    """How rows that were sorted by member go back to their places."""
    indices = [part for part in parts if isinstance(part, Tensor)]
    return torch.cat(indices).argsort() if indices else None


def _merge(tensors: list[Tensor], axis: int, order: Tensor | None) -> Tensor:
    merged = torch.cat(tensors, axis)
    return merged if order is None else merged.index_select(axis, order)
