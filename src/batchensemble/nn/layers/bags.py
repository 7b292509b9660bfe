"""Bags of embeddings that all members share: torch's own, also where bags are cut out of one flat row of ids."""

import torch
from torch import Tensor, nn

from batchensemble.nn.layers.converted import Converted, Pick
from batchensemble.nn.routing.layer_input import NOT_THE_ROWS, title
from batchensemble.nn.routing.route import current

_NO_FIT = ("index_size", "offsets[")  # in torch's errors for offsets that do not fit the flat ids


class EmbeddingBag(Converted, nn.EmbeddingBag):
    """A plain embedding bag inside an ensemble: the same table, the same function.

    Offsets that were repeated with the batch begin anew in every copy, while flat ids, which are no rows, are there
    once. torch would take the offsets for one ascending list, and put other ids into the bags. Where a network adds up
    the lengths of all copies, they go on ascending, as if there were ids for every copy.
    """

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """`(rows, ids)`, or flat `(ids)` with `offsets (rows)`, to `(rows, embedding_dim)`."""
        route = current()
        copies = 1 if route is None else route.present
        if offsets is not None and self._go_on(offsets, copies, len(input)):
            weights = None if per_sample_weights is None else torch.cat([per_sample_weights] * copies)
            return super().forward(torch.cat([input] * copies), offsets, weights)
        if offsets is None or not _is_repeated(offsets, copies):
            return super().forward(input, offsets, per_sample_weights)
        if len(input) == len(offsets) and _is_repeated(input, copies):
            raise ValueError(
                f"{title(self)} got as many flat ids as there are bags, which were taken for rows: name the ids (and "
                "per_sample_weights) in shared_inputs, or give ids (rows, length) with padding_idx and no offsets"
            )
        if offsets[0] != 0:
            raise ValueError(
                f"{title(self)} got offsets that begin at {int(offsets[0])}: a batch of flat ids cannot be cut, so "
                "call predict without batch_size"
            )
        each = super().forward(input, offsets[: len(offsets) // copies], per_sample_weights)
        return torch.cat([each] * copies)

    def _go_on(self, offsets: Tensor, copies: int, ids: int) -> bool:
        """Whether the offsets of every copy go on where those of the last one ended, after so many ids."""
        starts = offsets[:-1] if self.include_last_offset else offsets
        if copies == 1 or len(starts) % copies:
            return False
        each = starts.unflatten(0, (copies, -1))
        return bool((each - each[:1] == ids * torch.arange(copies, device=each.device).unsqueeze(1)).all())

    def plain(self, pick: Pick) -> nn.Module:
        """The bags themselves."""
        return self.plain_twin()


def _is_repeated(values: Tensor, copies: int) -> bool:
    """Whether a vector is several copies of a shorter one."""
    if copies == 1 or len(values) % copies:
        return False
    each = values.unflatten(0, (copies, -1))
    return bool((each == each[:1]).all())


def explain_bags(net: nn.Module, error: Exception, repeated: bool) -> str:
    """A note on a network's error if it comes from offsets of bags; else empty.

    Args:
        net: the network.
        error: what it raised.
        repeated: whether it got several copies of the batch, for members that answer at once.
    """
    if repeated and any(words in str(error) for words in _NO_FIT):
        return (
            "All members answered at once: offsets of bags were repeated with the batch, and flat ids that are no "
            "rows were not. Name the module behind the bags as fan_out: they then run once for all members."
        )
    ending = [module for module in net.modules() if isinstance(module, EmbeddingBag) and module.include_last_offset]
    if not ending or NOT_THE_ROWS not in str(error):
        return ""
    return (
        f"{title(ending[0])} takes offsets that end with the number of ids (include_last_offset=True): one more than "
        "there are bags. As an input they do not fit the rows: leave the last one out (include_last_offset=False), or "
        "give the network a length for every row."
    )
