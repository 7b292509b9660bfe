"""An embedding for members: `y = E[x] ∘ s_i`. There is no r, which would be as long as the vocabulary."""

from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.nn.init import Fast, Init, draw_fast_
from batchensemble.nn.layers.converted import Pick
from batchensemble.nn.layers.member import FastModule, MemberModule
from batchensemble.nn.routing.layer_input import rows_of


class Embedding(FastModule, MemberModule, nn.Embedding):
    """`torch.nn.Embedding` for members; `s (members, embedding_dim)`.

    Examples:
        >>> Embedding(10, 4, members=2)(torch.zeros(6, 5, dtype=torch.long)).shape
        torch.Size([6, 5, 4])
    """

    stacked = fast_weights = ("s",)
    s: nn.Parameter
    init: Init

    def add_fast_weights_(self, fast: Fast) -> None:
        """Add s; without r there is nothing for a rank to multiply."""
        self.members, self.init = fast.members, fast.init
        self.register_parameter("s", nn.Parameter(self.fresh(fast.members, fast.generator)["s"]))

    def fresh(self, count: int, generator: torch.Generator | None) -> dict[str, Tensor]:
        """The fast weights of new members."""
        return {"s": draw_fast_(self.weight.new_empty(count, self.weight.shape[1]), self.init, "s", generator)}

    def forward(self, input: Tensor) -> Tensor:
        """`(rows, ...) -> (rows, ..., embedding_dim)`."""
        rows = rows_of(self, input, features=0)
        y = super().forward(input)
        return rows.affine(y, self.s, at=y.ndim - 1)

    def unstacked(self, pick: Pick) -> dict[str, Tensor]:
        """A member's scaled table."""
        table = self.weight if self.max_norm is None else self.weight.renorm(self.norm_type, 0, self.max_norm)
        return {"weight": table * (self.s.mean(0) if pick is None else self.s[pick])}

    @torch.no_grad()
    def plain(self, pick: Pick) -> nn.Module:
        """The plain embedding of one member, without `max_norm`, which bounds E and not the member's own table."""
        module: Any = super().plain(pick)
        module.max_norm = None
        return module  # type: ignore[no-any-return]
