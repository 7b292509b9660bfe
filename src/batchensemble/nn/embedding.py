"""An embedding for members: `y = E[x] o s_i`. There is no r: a vector as long as the vocabulary is not small."""

from typing import Any, Self

import torch
from torch import Tensor, nn

from batchensemble.nn.init import Init, draw_fast
from batchensemble.nn.layers import check_count
from batchensemble.nn.member import MemberModule, Pick
from batchensemble.nn.route import rows_of


class Embedding(MemberModule, nn.Embedding):
    """`torch.nn.Embedding` for members; `s (members, embedding_dim)`.

    Example:
        >>> Embedding(10, 4, members=2)(torch.zeros(6, 5, dtype=torch.long)).shape
        torch.Size([6, 5, 4])
    """

    stacked = ("s",)
    s: nn.Parameter
    init: Init

    def __init__(
        self,
        *args: Any,
        members: int,
        init: Init = "sign",
        generator: torch.Generator | None = None,
        **kwargs: Any,
    ) -> None:
        check_count("members", members)
        super().__init__(*args, **kwargs)
        self.plain_type = nn.Embedding
        self._become(members, init, generator)

    @classmethod
    def ensembled(
        cls, module: nn.Module, members: int, init: Init = "sign", generator: torch.Generator | None = None
    ) -> Self:
        """The layer around a plain one, whose weight it keeps."""
        layer = cls.around(module)
        layer._become(members, init, generator)
        return layer

    def _become(self, members: int, init: Init, generator: torch.Generator | None) -> None:
        self.members, self.init = check_count("members", members), init
        self.register_parameter("s", nn.Parameter(self.fresh(members, generator)["s"]))

    def fresh(self, count: int, generator: torch.Generator | None) -> dict[str, Tensor]:
        """S of new members."""
        return {"s": draw_fast(self.weight, count, 1, self.weight.shape[1], self.init, "s", generator)}

    def forward(self, input: Tensor) -> Tensor:
        """`(rows, ...) -> (rows, ..., embedding_dim)`."""
        rows = rows_of(self, input)
        y = super().forward(input)
        return rows.affine(y, self.s, at=y.ndim - 1)

    def unstacked(self, pick: Pick) -> dict[str, Tensor]:
        """A member's scaled table."""
        return {"weight": self.weight * (self.s.mean(0) if pick is None else self.s[pick])}
