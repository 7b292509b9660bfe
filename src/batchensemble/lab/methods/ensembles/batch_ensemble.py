"""BatchEnsemble: members that share all but two vectors per layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import batchensemble as be
from batchensemble.lab.methods.ensembles.dropout import dropping_, matched_width
from batchensemble.lab.methods.ensembles.method import Batch, Method, Network, Stream
from batchensemble.lab.methods.ensembles.objective import classified

Rows = Literal["sub-batches", "repeated", "own crops"]


@dataclass(frozen=True)
class BatchEnsemble(Method):
    """The paper's method, with options for what the paper and its released code leave open.

    Args:
        members: number of members.
        rows: the rows a member trains on: its share of the batch (the paper), all of it (the released code), or all
            of its images in the member's own crops.
        init: initial values of r and s, as in `be.convert`: `sign`, `sign(0.9)`, `normal`, `first`, `ones`.
        norm: `shared` or `member`, as in `be.convert`.
        rank: rank of the matrix by which a member multiplies the shared weight.
        fast_lr_scale: learning rate of r and s relative to that of the other parameters.
        decay: what weight decay applies to: the `shared` weights or the `mean` weight of the members.
        dropout: dropout rate right before the classifier, in the wider head that `Dropout` has; samples are then
            drawn at test time.
        block_dropout: dropout rate before every convolution of the residual branches.
        diversity: weight of a reward for pairwise KL between members, which needs repeated rows.
    """

    members: int = 4
    rows: Rows = "sub-batches"
    init: str = "sign"
    norm: Literal["shared", "member"] = "shared"
    rank: int = 1
    fast_lr_scale: float = 1.0
    decay: Literal["shared", "mean"] = "shared"
    dropout: float = 0.0
    block_dropout: float = 0.0
    diversity: float = 0.0

    def __post_init__(self) -> None:
        if self.diversity and self.rows != "repeated":
            raise ValueError(f"diversity compares members on the same rows; got rows={self.rows!r}")

    def build(self, network: Network, seed: int) -> nn.Module:
        """Convert the plain network."""
        generator = torch.Generator().manual_seed(seed)
        head = matched_width(network(), self.members) if self.dropout else None
        net = network(head_width=head, dropout=self.dropout, block_dropout=self.block_dropout, generator=generator)
        how: dict[str, Any] = {"init": self.init, "norm": self.norm, "rank": self.rank}
        return be.convert(net, self.members, copy=False, generator=generator, **how)

    def streams(self, seed: int) -> tuple[Stream, ...]:
        """One stream, or with own crops one per member, all in the same order."""
        if self.rows == "own crops":
            return tuple(Stream(seed, seed * self.members + i) for i in range(self.members))
        return super().streams(seed)

    def loss(self, model: nn.Module, batch: Batch, weight_decay: float) -> dict[str, Tensor]:
        """The mean of the members' losses, never the loss of their mean."""
        scores = self._repeated(model, batch) if self.rows == "repeated" else self._dealt(model, batch)
        if self.decay == "mean":
            # An optimiser's weight decay adds the gradient of half the penalty.
            scores["loss"] = scores["loss"] + 0.5 * weight_decay * be.mean_weight_penalty(model)
        return scores

    def groups(self, model: nn.Module, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Apply weight decay to the shared weights, or to nothing if the mean weight is in the loss."""
        decay = weight_decay if self.decay == "shared" else 0.0
        return be.parameter_groups(model, lr, decay, fast_lr_scale=self.fast_lr_scale)

    def logits(self, models: Sequence[nn.Module], images: Tensor, samples: int) -> Tensor:
        """`(members, N, classes)`, or `(samples * members, N, classes)` with dropout."""
        model = cast(be.Ensemble, models[0])
        if not self._drops:
            return cast(Tensor, model.members(images))
        if self.block_dropout:
            return torch.cat([dropping_(model).members(images) for _ in range(samples)])
        return head_samples(dropping_(model), images, samples)

    def passes(self, samples: int) -> int:
        """One pass per member and sample."""
        return self.members * (samples if self._drops else 1)

    @property
    def _drops(self) -> bool:
        return bool(self.dropout or self.block_dropout)

    def _dealt(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Assign every row to a member by its position in the batch of all processes."""
        if batch.place is None:
            return classified(model(batch.images), batch.labels)
        members = batch.place * self.members // batch.total
        return classified(model(batch.images, member=members), batch.labels)

    def _repeated(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Give every row to every member."""
        logits = cast(be.Ensemble, model).members(batch.images)
        scores = classified(logits.flatten(0, 1), batch.labels.repeat(self.members))
        if self.diversity:
            scores["loss"] = scores["loss"] - self.diversity * pairwise_kl(logits)
        return scores


def head_samples(model: be.Ensemble, images: Tensor, samples: int) -> Tensor:
    """`(samples * members, N, classes)` from one pass that repeats only the head, where the dropout is."""
    further: list[Tensor] = []

    def repeat(head: nn.Module, features: tuple[Tensor, ...], logits: Tensor) -> None:
        further.extend(head.forward(*features) for _ in range(samples - 1))

    handle = model.net.get_submodule("head").register_forward_hook(repeat)
    try:
        first: Tensor = model.members(images)
    finally:
        handle.remove()
    return torch.cat([first, *(logits.view_as(first) for logits in further)])


def pairwise_kl(logits: Tensor, most: float = 2.0) -> Tensor:
    """The mean KL divergence between two members, capped at `most` so that its reward is bounded.

    `logits` is `(members, N, classes)`.

    Examples:
        >>> pairwise_kl(torch.zeros(3, 5, 10)).item()
        0.0
    """
    log_p = F.log_softmax(logits, -1)
    members = len(logits)
    cross = torch.einsum("inc,jnc->ijn", log_p.exp(), log_p)  # sum_c p_i log p_j
    kl = cross.diagonal(dim1=0, dim2=1).T[:, None] - cross  # (members, members, N), zero where i = j
    return (kl.mean(-1).sum() / (members * (members - 1))).clamp(max=most)
