"""A translator's inputs, its loss, and the log-probabilities of its target tokens."""

import math
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import batchensemble as be
from batchensemble.lab.data.text import PAD
from batchensemble.lab.studies.translation.batches import Batch
from batchensemble.lab.studies.translation.recipe import Members
from batchensemble.lab.training.step import Loss


def inputs(batch: Batch) -> dict[str, Any]:
    """The network's inputs: the source, and the target up to each token to predict."""
    return {
        "input_ids": batch.source,
        "attention_mask": batch.source.ne(PAD),
        "decoder_input_ids": F.pad(batch.target[:, :-1], (1, 0), value=PAD),
        "use_cache": False,
    }


def objective(members: Members | None, smoothing: float) -> Loss:
    """The training loss; with members it is the mean of their losses, never the loss of their mean."""
    if members is not None and members.rows == "repeated":
        return partial(_repeated, smoothing=smoothing)
    return partial(_dealt, count=1 if members is None else members.count, smoothing=smoothing)


def _dealt(model: nn.Module, batch: Batch, count: int, smoothing: float) -> dict[str, Tensor]:
    """Assign every sentence to one member, by its position in the batch of all processes."""
    if batch.place is None or count == 1:
        logits = model(**inputs(batch)).logits
    else:
        logits = model(**inputs(batch), member=batch.place * count // batch.total).logits
    return translated(logits, batch.target, smoothing, batch.share)


def _repeated(model: nn.Module, batch: Batch, smoothing: float) -> dict[str, Tensor]:
    """Give every sentence to every member."""
    logits = cast(be.Ensemble, model).members(**inputs(batch)).logits
    share = None if batch.share is None else batch.share * len(logits)
    return translated(logits, batch.target.expand(len(logits), *batch.target.shape), smoothing, share)


def translated(logits: Tensor, target: Tensor, smoothing: float, share: Tensor | None = None) -> dict[str, Tensor]:
    r"""The mean loss per token, which is minimised, the same without smoothing, and the number of tokens.

    `-(1 - e) log p(y) - e mean_w log p(w)` for logits `(..., T, words)` and words `(..., T)`, without padding.
    Processes have different numbers of tokens: each divides by the mean number, `share`, so that the mean of their
    gradients weights every token equally.

    Examples:
        >>> scores = translated(torch.zeros(1, 3, 8), torch.tensor([[5, 1, 0]]), smoothing=0.1)
        >>> round(scores["nll"].exp().item(), 3), scores["tokens"].item()
        (8.0, 2.0)
    """
    log_probs = logits.float().log_softmax(-1)
    real = target.ne(PAD)
    tokens = real.sum()
    share = tokens if share is None else share
    nll = -(word_log_probs(log_probs, target) * real).sum() / share
    even = -(log_probs.mean(-1) * real).sum() / share
    return {"loss": (1 - smoothing) * nll + smoothing * even, "nll": nll.detach(), "tokens": tokens.float()}


def word_log_probs(log_probs: Tensor, target: Tensor) -> Tensor:
    """The log-probability of every target word, `(..., T)`, from those of all words, `(..., T, words)`."""
    return log_probs.gather(-1, target.unsqueeze(-1)).squeeze(-1)


def mean_log_prob(log_probs: Tensor) -> Tensor:
    r"""`log 1/M sum_i p_i` over the first axis.

    Examples:
        >>> mean_log_prob(torch.tensor([[0.8], [0.4]]).log()).exp()
        tensor([0.6000])
    """
    return log_probs.logsumexp(0) - math.log(len(log_probs))


@torch.no_grad()
def member_log_probs(model: nn.Module, batch: Batch) -> Tensor:
    """Every member's log-probability of every target word, `(members, N, T)`; a network is one member."""
    if isinstance(model, be.Ensemble):
        logits = model.members(**inputs(batch)).logits
    else:
        logits = model(**inputs(batch)).logits.unsqueeze(0)
    return word_log_probs(logits.float().log_softmax(-1), batch.target.expand(len(logits), *batch.target.shape))
