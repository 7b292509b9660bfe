"""LSTM and GRU for members: the weights are folded and every member makes one fused call.

A recurrent kernel takes one weight for its whole batch, so rows with member ids are processed member by member.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from batchensemble.nn.copies import shallow_copy_as
from batchensemble.nn.init import Fast
from batchensemble.nn.layers.converted import OURS, Pick
from batchensemble.nn.layers.linear import Linear, linear_of
from batchensemble.nn.layers.member import FastModule
from batchensemble.nn.routing.layer_input import copies_of_the_batch, rows_of, title
from batchensemble.nn.routing.rows import Rows

# cuDNN would have the weights in one piece of memory, and advises to call flatten_parameters(). A member's weights are
# made for each call, so there is nothing to flatten. Filters belong to the process: changing them around a call would
# not be safe with several threads.
warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk", UserWarning)

Hidden = Any  # a tensor (GRU) or a pair of tensors (LSTM), each (layers * directions, rows, size)


class Cell(Linear):
    """One of a recurrent layer's weights: a linear layer with the initialisation of torch's LSTM and GRU."""

    hidden_size: int

    def reset_parameters(self) -> None:
        """Start as a new layer does."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for tensor in (self.weight, self.bias):
            if tensor is not None:
                nn.init.uniform_(tensor, -bound, bound)
        self.start_members_()


class Recurrent(FastModule):
    """Base of LSTM and GRU: each of torch's weights (`weight_ih_l0`) is a `batchensemble.nn.Linear` here (`ih_l0`).

    Its subclasses also inherit from the torch layer that they ensemble.
    """

    hidden_size: int
    num_layers: int
    bidirectional: bool
    batch_first: bool
    _flat_weights_names: list[str]
    _init_flat_weights: Any

    def add_fast_weights_(self, fast: Fast) -> None:
        """Split the weights into linear layers that have members."""
        for name in self._flat_weights_names:
            kind, cell = name.split("_", 1)
            if kind == "weight":
                linear = linear_of(getattr(self, name), getattr(self, f"bias_{cell}", None))
                reads_input = cell.startswith("ih_l0")
                self.add_module(cell, Cell.ensembled(linear, fast if reads_input else fast.after_first()))
                self._linear(cell).hidden_size = self.hidden_size
        for name in self._flat_weights_names:
            del self._parameters[name]
        self._init_flat_weights()

    def reset_parameters(self) -> None:
        """Start as a new layer does: weights and biases by torch's own rule, r and s by `init`."""
        if "ih_l0" not in self._modules:  # torch's constructor calls this, too
            super().reset_parameters()  # type: ignore[misc]
        for part in self.children():
            if isinstance(part, Cell):
                part.reset_parameters()

    @property
    def members(self) -> int:
        """How many members there are."""
        return self._linear("ih_l0").members

    def _linear(self, cell: str) -> Cell:
        linear: Any = self._modules[cell]
        return linear  # type: ignore[no-any-return]

    def forward(self, input: Tensor | PackedSequence, hx: Hidden = None) -> tuple[Any, Hidden]:
        """As in torch, for batches: `(rows, length, features)` with `batch_first`, else `(length, rows, features)`."""
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if input.ndim != 3:
            raise ValueError(f"members need a batch: the input must have 3 axes, got shape {tuple(input.shape)}")
        return self._run(input, hx, None)

    def flatten_parameters(self) -> None:
        """Do nothing: weights are folded anew in every call. Networks call this before their recurrent layers."""

    def _packed(self, x: PackedSequence, hx: Hidden) -> tuple[PackedSequence, Hidden]:
        padded, lengths = pad_packed_sequence(x, batch_first=self.batch_first)
        y, hidden = self._run(padded, hx, lengths)
        return _packed_like(y, lengths, x, axis=0 if self.batch_first else 1), hidden

    def _run(self, x: Tensor, hx: Hidden, lengths: Tensor | None) -> tuple[Tensor, Hidden]:
        axis = 0 if self.batch_first else 1
        rows = rows_of(self, x, axis)
        hx = _each_state(lambda state: self._for_every_copy(state, x.shape[axis], rows), hx)
        parts = rows.partition(x.shape[axis]) or [(0, slice(0, 0))]  # ids for a batch without rows
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

    def _for_every_copy(self, state: Tensor, count: int, rows: Rows) -> Tensor:
        """Repeat a state of the batch for every member, or fold one with a member axis, as all members return it."""
        layers = self.num_layers * (2 if self.bidirectional else 1)
        found, copies = state, copies_of_the_batch(self)
        if rows.owner is None and state.ndim == 4 and len(state) == self.members:
            found = state.movedim(0, 1).flatten(1, 2)
        elif rows.owner is None and state.shape[1:2] == (count // copies,):
            found = torch.cat([state] * copies, 1)
        if found.shape[:2] != (layers, count):
            alike = f", or for all members alike ({layers}, {count // copies}, size)" if copies > 1 else ""
            raise ValueError(
                f"{title(self)} got a state of shape {tuple(state.shape)} for {count} rows: expected "
                f"({layers}, {count}, size){alike}. Where the batch has as many rows as the state has layers, or as "
                "there are members, name the state in shared_inputs."
            )
        return found

    def _member(self, member: int, x: Tensor, hx: Hidden, lengths: Tensor | None) -> tuple[Tensor, Hidden]:
        """One fused call with this member's weights."""
        cell = shallow_copy_as(self.plain_type, self, without=OURS, _modules={}, _flat_weights=self._folded(member))
        if lengths is None:
            y, hidden = cell.forward(x, hx)  # not cell(), which would call our hooks again
            return y, hidden
        packed, hidden = cell.forward(pack_padded_sequence(x, lengths, self.batch_first, enforce_sorted=False), hx)
        total = x.shape[1 if self.batch_first else 0]
        return pad_packed_sequence(packed, self.batch_first, total_length=total)[0], hidden

    def _folded(self, pick: Pick) -> list[Tensor]:
        """The plain layer's weights and biases, for one member or the mean."""
        named = [name.split("_", 1) for name in self._flat_weights_names]
        cells = {cell: self._linear(cell).unstacked(pick) for kind, cell in named if kind == "weight"}
        return [cells[cell][kind] for kind, cell in named]

    @torch.no_grad()
    def plain(self, pick: Pick) -> nn.Module:
        """The plain recurrent layer of one member."""
        module: Any = self.plain_twin()
        for name, tensor in zip(self._flat_weights_names, self._folded(pick), strict=True):
            kind, cell = name.split("_", 1)
            trains = getattr(self._linear(cell), kind).requires_grad
            module._modules.pop(cell, None)
            module._parameters[name] = nn.Parameter(tensor.detach().clone(), requires_grad=trains)
        module._init_flat_weights()
        return module  # type: ignore[no-any-return]


class LSTM(Recurrent, nn.LSTM):
    """`torch.nn.LSTM` for members: `(members * n, length, in)` with `batch_first`, to `(members * n, length, hidden)`.

    Each of torch's weights (`weight_ih_l0`) is a `batchensemble.nn.Linear` here (`ih_l0`), with its own r and s.

    Examples:
        >>> y, (h, c) = LSTM(4, 6, members=2, batch_first=True)(torch.randn(8, 5, 4))
        >>> y.shape, h.shape
        (torch.Size([8, 5, 6]), torch.Size([1, 8, 6]))
    """


class GRU(Recurrent, nn.GRU):
    """`torch.nn.GRU` for members; shapes and weights as in `LSTM`.

    Examples:
        >>> y, h = GRU(4, 6, members=2, batch_first=True)(torch.randn(8, 5, 4))
        >>> y.shape, h.shape
        (torch.Size([8, 5, 6]), torch.Size([1, 8, 6]))
    """


def _packed_like(y: Tensor, lengths: Tensor, x: PackedSequence, axis: int) -> PackedSequence:
    """Pack `y` in the same order as `x`, as torch's layers do."""
    if x.sorted_indices is not None:
        y, lengths = y.index_select(axis, x.sorted_indices), lengths[x.sorted_indices.to(lengths.device)]
    packed = pack_padded_sequence(y, lengths, batch_first=axis == 0)
    return PackedSequence(packed.data, packed.batch_sizes, x.sorted_indices, x.unsorted_indices)


def _take(x: Tensor, mine: slice | Tensor, axis: int) -> Tensor:
    if isinstance(mine, Tensor):
        return x.index_select(axis, mine)
    return x.narrow(axis, mine.start, mine.stop - mine.start)


def _each_state(function: Callable[[Tensor], Tensor], hx: Hidden) -> Hidden:
    if hx is None:
        return None
    return function(hx) if isinstance(hx, Tensor) else tuple(function(state) for state in hx)


def _take_hidden(hx: Hidden, mine: slice | Tensor) -> Hidden:
    return _each_state(lambda state: _take(state, mine, 1).contiguous(), hx)


def _take_lengths(lengths: Tensor | None, mine: slice | Tensor) -> Tensor | None:
    if lengths is None:
        return None
    return lengths[mine.to(lengths.device) if isinstance(mine, Tensor) else mine]


def _order(parts: list[slice | Tensor]) -> Tensor | None:
    """The order that puts rows sorted by member back in their places; `None` if they were never sorted."""
    indices = [part for part in parts if isinstance(part, Tensor)]
    return torch.cat(indices).argsort() if indices else None


def _merge(tensors: list[Tensor], axis: int, order: Tensor | None) -> Tensor:
    merged = torch.cat(tensors, axis)
    return merged if order is None else merged.index_select(axis, order)
