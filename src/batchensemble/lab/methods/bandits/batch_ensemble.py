"""BatchEnsemble: members share a network except for two vectors per layer, and one member decides."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from batchensemble.lab.methods.bandits.agent import NetworkAgent
from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.history import Seen
from batchensemble.lab.methods.bandits.network import (
    Layer,
    NetworkTraining,
    answer,
    draw_layers,
    forward,
    squared_error,
)
from batchensemble.nn.init import draw_fast_


@dataclass(frozen=True)
class BatchEnsemble:
    """Thompson sampling with members: a randomly drawn member makes each decision.

    The paper does not say how it trains here. We train every member on the same minibatch, with the hyper-parameters
    of the single network, on the mean of the members' losses.

    Args:
        members: number of members.
        init: initial values of r and s, as in `be.convert`.
        training: how the shared network is trained.
    """

    members: int = 4
    init: str = "sign"
    training: NetworkTraining = field(default_factory=NetworkTraining)

    def start(self, setting: Setting) -> "BatchEnsembleAgent":
        """Start the algorithm at the beginning of its games."""
        return BatchEnsembleAgent(setting, self)


class BatchEnsembleAgent(NetworkAgent):
    """`BatchEnsemble` while it plays.

    `be.nn.Linear` has one W, but here there is one for every trial. So equation 5 is written out again, folded, with
    the trials in front: `W_tm = W_t ∘ s_tm r_tmᵀ`. A test compares its values and gradients with those of
    `be.convert`.
    """

    def __init__(self, setting: Setting, method: BatchEnsemble) -> None:
        self._init = method.init
        super().__init__(setting, method.training, method.members)

    def start(self) -> list[Tensor]:
        """Draw W `(trials, out, in)`, bias, s `(trials, members, out)`, r `(trials, members, in)` of every layer."""
        parameters = []
        for weight, bias in draw_layers(self.streams, self.sizes, self.training.init):
            members = bias.mT.repeat(1, self.nets, 1)  # (trials, members, out)
            s, r = (self._fast(weight, weight.shape[axis], side) for axis, side in ((1, "s"), (2, "r")))
            parameters += [weight, members, s, r]
        return parameters

    def _fast(self, weight: Tensor, features: int, side: str) -> Tensor:
        """Draw fast weights (r or s) of all trials and members as the library does."""
        return self.streams.each(lambda g: draw_fast_(weight.new_empty(self.nets, features), self._init, side, g))

    def layers(self) -> list[Layer]:
        """Every member's weights, trial by trial."""
        return [
            Layer(fold(weight[:, None], s, r).flatten(0, 1), bias.flatten(0, 1)[..., None])
            for weight, bias, s, r in self._grouped()
        ]

    def values(self, contexts: Tensor) -> Tensor:
        """The outputs of one member per trial."""
        trials = torch.arange(len(contexts), device=contexts.device)
        member = self.streams.integers(self.nets)
        layers = [
            Layer(fold(weight, s[trials, member], r[trials, member]), bias[trials, member, :, None])
            for weight, bias, s, r in self._grouped()
        ]
        return answer(layers, contexts)

    def minibatch(self) -> Seen:
        """Draw rows of the history, the same for all members of a trial."""
        return self.history.rows(self.streams.integers(len(self.history), self.training.batch))

    def loss(self, seen: Seen) -> Tensor:
        """The sum over trials of the mean of the members' losses."""
        outputs = forward(self.layers(), seen.contexts)[1]
        arms, rewards = (part.repeat_interleave(self.nets, 0) for part in seen[1:])
        return squared_error(outputs, Seen(seen.contexts, arms, rewards)).sum() / self.nets

    def _grouped(self) -> Iterator[tuple[Tensor, ...]]:
        """`(W, bias, s, r)` of every layer."""
        return zip(*(self.parameters[i::4] for i in range(4)), strict=True)


def fold(weight: Tensor, s: Tensor, r: Tensor) -> Tensor:
    """`W ∘ s rᵀ` for `W (..., out, in)`, `s (..., out)`, `r (..., in)`: equation 5, weights first.

    Examples:
        >>> fold(torch.ones(2, 3), torch.tensor([1.0, -1.0]), torch.tensor([1.0, 2.0, 3.0])).tolist()
        [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]
    """
    return weight * (s[..., None] * r[..., None, :])
