"""Perplexity per token, from the members' averaged probabilities."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from batchensemble.lab.data.text import PAD, Prepared
from batchensemble.lab.models.transformer import dropping
from batchensemble.lab.studies.translation.batches import Batch, validation_batches
from batchensemble.lab.studies.translation.objective import mean_log_prob, member_log_probs
from batchensemble.nn.mode import evaluating
from batchensemble.seeds import seeded

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Ask = Callable[[Batch], Tensor]
"""Maps a batch to log-probabilities `(answers, N, T)` of its target tokens."""


@dataclass(frozen=True)
class Likelihood:
    """How well a text was predicted.

    Attributes:
        nll: negative log-likelihood per token, of the averaged probabilities.
        member_nll: negative log-likelihood per token, of each member alone.
        tokens: number of tokens.
    """

    nll: float
    member_nll: tuple[float, ...]
    tokens: int

    @property
    def perplexity(self) -> float:
        """The perplexity, `exp(nll)`."""
        return math.exp(self.nll)


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Measures networks on one text.

    Args:
        data: the text.
        fabric: device, precision and processes.
        tokens: most tokens in a batch.
    """

    data: Prepared
    fabric: "Fabric"
    tokens: int = 4096

    def likelihood(self, model: nn.Module) -> Likelihood:
        """Measure a network or an ensemble in evaluation mode, and restore its mode afterwards."""
        with evaluating(model):
            return self._likelihood(lambda batch: member_log_probs(model, batch))

    def dropout_likelihood(self, net: nn.Module, rate: float, samples: int, seed: int) -> Likelihood:
        """Measure MC-dropout: one network, its masks drawn `samples` times at the given rate."""

        def ask(batch: Batch) -> Tensor:
            return torch.cat([member_log_probs(net, batch) for _ in range(samples)])

        with seeded(seed, self.fabric.device), dropping(net, rate):
            return self._likelihood(ask)

    def best_dropout(self, net: nn.Module, rates: Sequence[float], samples: int, seed: int) -> dict[float, Likelihood]:
        """Measure MC-dropout at every rate, and sort the best first."""
        found = {rate: self.dropout_likelihood(net, rate, samples, seed) for rate in rates}
        return dict(sorted(found.items(), key=lambda item: item[1].nll))

    def _likelihood(self, ask: Ask) -> Likelihood:
        """Measure everything in every process but use the first one's numbers: all must agree when to stop."""
        sums: Tensor | None = None
        for batch in validation_batches(self.data, self.tokens, self.fabric.device):
            with self.fabric.autocast():
                found = _sums(ask(batch), batch.target)
            sums = found if sums is None else sums + found
        if sums is None:
            raise ValueError("there is no text to measure on")
        tokens, nll, *members = self.fabric.broadcast(sums.tolist())
        return Likelihood(nll / tokens, tuple(one / tokens for one in members), int(tokens))


def _sums(log_probs: Tensor, target: Tensor) -> Tensor:
    """Sum tokens and negative log-likelihoods, of all answers together and of each: `(2 + answers,)`, in double."""
    real = target.ne(PAD)
    every = torch.cat([mean_log_prob(log_probs)[None], log_probs]).double()
    return torch.cat([real.sum()[None].double(), -(every * real).sum((1, 2))])
