"""Rank-one weights: all members share W, and member i's own weight is `W ∘ s_i r_iᵀ`.

`weight` has torch's own shape, `(out, in)` for a linear layer, and is shared; `r (members, in)`, `s (members, out)` and
`bias (members, out)` belong to the members. With `rank=k` they are `(members, k, in)` and `(members, k, out)`.
"""

from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.nn.init import Fast, Init, draw_fast_
from batchensemble.nn.layers.converted import Pick
from batchensemble.nn.layers.member import FastModule, MemberModule


class RankOne(FastModule, MemberModule):
    """A linear operation with a shared weight and rank-one fast weights.

    Attributes:
        features_at: the feature axis: -1, or 1 for convolutions.
        input_first: whether the weight is `(in, out, ...)` instead of `(out, in, ...)`.
        stackable: whether `product` takes a stack of weights, one per member.
    """

    stacked = ("r", "s", "bias")
    fast_weights = ("r", "s")
    features_at: int = -1
    input_first: bool = False
    stackable: bool = False

    weight: Tensor
    bias: Any  # a tensor, or None
    r: Tensor
    s: Tensor
    rank: int
    init: Init

    def add_fast_weights_(self, fast: Fast) -> None:
        """Add r and s, and a bias for every member."""
        self.members, self.rank, self.init = fast.members, fast.rank, fast.init
        for name, rows in self.fresh(fast.members, fast.generator).items():
            self.register_parameter(name, nn.Parameter(rows))
        self.stack_("bias")

    def fresh(self, count: int, generator: torch.Generator | None) -> dict[str, Tensor]:
        """The fast weights of new members."""
        shape = (count,) if self.rank == 1 else (count, self.rank)
        return {
            side: draw_fast_(self.weight.new_empty(*shape, size), self.init, side, generator)
            for side, size in zip("rs", self._features(), strict=True)
        }

    @property
    def _groups(self) -> int:
        """A convolution's groups; on a linear layer, something called so is the user's own."""
        return self.groups if self.features_at == 1 else 1  # type: ignore[return-value]

    def _features(self) -> tuple[int, int]:
        first, second = self.weight.shape[:2]
        return (first, second * self._groups) if self.input_first else (second * self._groups, first)

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """`x Wᵀ + b`; with a stack of weights and biases `x_i W_iᵀ + b_i`."""
        raise NotImplementedError

    def fold(self, r: Tensor, s: Tensor) -> Tensor:
        """`W ∘ s rᵀ`, summed over the rank, in the layout of W; leading axes of r and s (members) stay in front."""
        if self.rank == 1:
            r, s = r.unsqueeze(-2), s.unsqueeze(-2)
        return self.weight * self._fast_matrix(r, s)

    def mean_weight(self) -> Tensor:
        """`W ∘ mean_i(s_i r_iᵀ)`, without building any member's weight."""
        r, s = self.r.reshape(-1, self.r.shape[-1]), self.s.reshape(-1, self.s.shape[-1])
        return self.weight * (self._fast_matrix(r, s) / self.members)

    def _fast_matrix(self, r: Tensor, s: Tensor) -> Tensor:
        """`sum_k s_k r_kᵀ` for `r (..., k, in)`, `s (..., k, out)`, in a shape that broadcasts against W."""
        r, s = r.unflatten(-1, (self._groups, -1)), s.unflatten(-1, (self._groups, -1))
        pattern = "...kgi,...kgo->...gio" if self.input_first else "...kgi,...kgo->...goi"
        outer = torch.einsum(pattern, r, s).flatten(-3, -2)
        return outer.reshape(*outer.shape, *[1] * (self.weight.ndim - 2))

    def unstacked(self, pick: Pick) -> dict[str, Tensor]:
        """A member's folded weight and its bias."""
        weight = self.mean_weight() if pick is None else self.fold(self.r[pick], self.s[pick])
        return {"weight": weight, **super().unstacked(pick)}
