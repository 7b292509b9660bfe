"""Is it really an ensemble? How different the members are on your data, and what that is worth."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from batchensemble import metrics
from batchensemble.axis import map_tensors
from batchensemble.ensemble import Ensemble
from batchensemble.nn.changed import member_modules
from batchensemble.nn.mode import evaluating
from batchensemble.prediction import Prediction

# Independent networks disagree on as many rows as they get wrong, within a factor of two. Members that disagree on a
# tenth of that, and owe less than a fiftieth of their uncertainty to disagreement, are one network in practice.
COLLAPSED_DISAGREEMENT = 0.1
COLLAPSED_INFORMATION = 0.02
SURE = 2.0  # standard errors above zero from which a gain counts
IGNORED = -100  # torch's label for positions that do not count


@dataclass(frozen=True)
class Diagnosis:
    """How far apart the members of an ensemble are; prints in plain words.

    Attributes:
        members: number of members.
        rows: number of labelled rows.
        similarity: for every converted layer, the mean cosine between members' r, and between their s.
        disagreement: share of pairs of members that answer differently.
        disagreement_over_error: `disagreement` divided by the members' mean error.
        pairwise_kl: mean divergence between two members' answers, in nats.
        mutual_information: what members disagree about, in nats.
        entropy: the ensemble's whole uncertainty, in nats.
        member_accuracy: accuracy of every member.
        accuracy: accuracy of the ensemble.
        member_nll: the members' mean negative log-likelihood.
        nll: the ensemble's negative log-likelihood.
        gain_error: standard error of `gain` over the rows.
        nll_gain: negative log-likelihood of the best member minus that of the ensemble.
        nll_gain_error: standard error of `nll_gain` over the rows.
        collapsed: whether the members behave like one network.
    """

    members: int
    rows: int
    similarity: Mapping[str, Mapping[str, float]] = field(repr=False)
    disagreement: float
    disagreement_over_error: float
    pairwise_kl: float
    mutual_information: float
    entropy: float
    member_accuracy: tuple[float, ...]
    accuracy: float
    member_nll: float
    nll: float
    gain_error: float
    nll_gain: float
    nll_gain_error: float

    @property
    def gain(self) -> float:
        """Accuracy of the ensemble minus the members' mean accuracy."""
        return self.accuracy - sum(self.member_accuracy) / self.members

    @property
    def collapsed(self) -> bool:
        """Whether the members behave like one network."""
        same_answers = self.disagreement_over_error <= COLLAPSED_DISAGREEMENT
        return same_answers and self.mutual_information <= COLLAPSED_INFORMATION * self.entropy

    @property
    def verdict(self) -> str:
        """The diagnosis in words."""
        if self.members == 1:
            return "One member is one network: there is nothing to compare."
        if self.collapsed:
            return (
                "Collapsed: the members give the same answers, so this ensemble behaves like one network. "
                "Start r and s further apart (init='normal(0.1)' for a pre-trained network, 'sign' or 'normal' from "
                "scratch), train on split rows, and keep weight decay off r and s."
            )
        gains = {"accuracy": (self.gain, self.gain_error), "likelihood": (self.nll_gain, self.nll_gain_error)}
        found = [name for name, (gain, error) in gains.items() if gain > SURE * error]
        differ = f"The members {'differ' if self.disagreement else 'give different probabilities, the same labels'}"
        loses = self.nll_gain < -SURE * self.nll_gain_error
        end = "; the best member alone has the higher likelihood." if loses else "."
        if not found:
            return f"{differ}, but averaging them gains nothing beyond the noise of these rows{end}"
        return f"An ensemble: {differ[0].lower()}{differ[1:]}, and averaging them gains {' and '.join(found)}{end}"

    def __str__(self) -> str:
        mean = sum(self.member_accuracy) / self.members
        most = sorted(self.similarity.items(), key=lambda item: -min(item[1].values()))[:3]
        alike = ", ".join(f"{name or '(root)'} ({min(sides.values()):+.2f})" for name, sides in most)
        return "\n".join(
            [
                self.verdict,
                f"  {self.members} members on {self.rows} rows",
                f"  accuracy            {self.accuracy:.2%} (members {mean:.2%}, "
                f"gain {self.gain:+.2%} ± {self.gain_error:.2%})",
                f"  log-likelihood      {-self.nll:.4f} (members {-self.member_nll:.4f}, "
                f"gain over the best {self.nll_gain:+.4f} ± {self.nll_gain_error:.4f})",
                f"  disagreement        {self.disagreement:.2%}, {self.disagreement_over_error:.2f} of the error",
                f"  pairwise KL         {self.pairwise_kl:.4f} nats",
                f"  mutual information  {self.mutual_information:.4f} of {self.entropy:.4f} nats",
                f"  most alike layers   {alike}",
            ]
        )


def diagnose(model: Ensemble, loader: Iterable[Any]) -> Diagnosis:
    """Measure how different the members are on labelled data, and what averaging them is worth.

    Args:
        model: an ensemble of classifiers (`combine` "softmax" or "vote").
        loader: batches `(inputs, labels)`, the inputs a tensor, a tuple or a dict, with one label for each answer; or
            dicts with `labels`, compared as the network's own loss does: those of a causal language model are shifted.
            Labels of -100 are left out. Inputs are moved to the model's device.

    Examples:
        >>> import batchensemble as be
        >>> same = be.convert(torch.nn.Linear(4, 3), members=2, init="ones")
        >>> be.diagnose(same, [(torch.randn(8, 4), torch.arange(8) % 3)]).collapsed
        True
    """
    if model.settings.combine not in ("softmax", "vote"):
        raise ValueError(f"diagnose compares classes; combine={model.settings.combine!r} has none")
    member_probs, labels = _answers(model, loader)
    probs = member_probs.mean(0)
    prediction = Prediction(member_probs.clamp_min(torch.finfo(torch.float64).tiny).log())
    several = len(model) > 1
    return Diagnosis(
        members=len(model),
        rows=len(labels),
        similarity=_similarity(model) if several else {},
        disagreement=metrics.disagreement(member_probs) if several else 0.0,
        disagreement_over_error=metrics.disagreement_over_error(member_probs, labels) if several else 0.0,
        pairwise_kl=metrics.pairwise_kl(member_probs) if several else 0.0,
        mutual_information=prediction.mutual_information.mean().item(),
        entropy=prediction.entropy.mean().item(),
        member_accuracy=tuple(metrics.member_accuracy(member_probs, labels).tolist()),
        accuracy=metrics.accuracy(probs, labels),
        member_nll=sum(metrics.nll(member, labels) for member in member_probs) / len(model),
        nll=metrics.nll(probs, labels),
        **_gains(member_probs, labels),
    )


def _gains(member_probs: Tensor, labels: Tensor) -> dict[str, float]:
    """What averaging gains, row by row: accuracy over the mean member, likelihood over the best one."""
    everyone = torch.cat([member_probs, member_probs.mean(0, keepdim=True)])  # the ensemble comes last
    right = (everyone.argmax(-1) == labels).double()
    rows = torch.arange(len(labels))
    surprise = -everyone[:, rows, labels].clamp_min(torch.finfo(torch.float64).tiny).log()
    best = surprise[:-1].mean(1).argmin()
    likelier = surprise[best] - surprise[-1]
    return {
        "gain_error": _standard_error(right[-1] - right[:-1].mean(0)),
        "nll_gain": likelier.mean().item(),
        "nll_gain_error": _standard_error(likelier),
    }


def _standard_error(differences: Tensor) -> float:
    """The standard error of the mean; infinite for a single row, which says nothing about it."""
    return metrics.standard_error(differences).item() if len(differences) > 1 else math.inf


def _answers(model: Ensemble, loader: Iterable[Any]) -> tuple[Tensor, Tensor]:
    """Members' probabilities `(members, rows, classes)` and labels `(rows,)`; positions count as rows."""
    found: list[Tensor] = []
    wanted: list[Tensor] = []
    shifts = False
    for batch in loader:
        args, kwargs, labels = _inputs_and_labels(batch)
        args, kwargs = map_tensors(lambda tensor: tensor.to(model.device), (args, kwargs))
        if not found and isinstance(batch, Mapping):
            shifts = _own_loss_shifts(model, kwargs, labels)
        if isinstance(batch, Mapping) and "labels" in model.edge.names:
            kwargs["labels"] = labels.to(model.device)  # an encoder-decoder derives its decoder's inputs from them
        labels = F.pad(labels, (0, 1), value=IGNORED)[:, 1:] if shifts else labels
        probs = model.predict(*args, **kwargs).member_probs.double().cpu()
        axis = model.class_axis(probs.ndim - 1) % (probs.ndim - 1) + 1
        answers, aligned = probs.movedim(axis, -1), _rows_first(model, labels.cpu(), probs.ndim - 1)
        if aligned.shape != answers.shape[1:-1]:
            raise ValueError(
                f"labels {tuple(labels.shape)} are not one for each of the answers {tuple(probs.shape[1:])}"
            )
        found.append(answers[:, aligned != IGNORED])
        wanted.append(aligned[aligned != IGNORED])
    if not found:
        raise ValueError("the loader gave no batch to diagnose")
    if not any(map(len, wanted)):
        raise ValueError(f"the loader gave no row whose label counts: there are none, or all are {IGNORED}")
    return torch.cat(found, 1), torch.cat(wanted)


def _rows_first(model: Ensemble, labels: Tensor, ndim: int) -> Tensor:
    """Move the labels' rows to the front, as in a prediction; of an output's `ndim` axes, labels lack the classes."""
    rows = model.settings.batch_dim
    rows -= model.settings.class_dim % ndim < rows
    return labels.movedim(rows, 0) if labels.ndim > rows else labels


@torch.no_grad()
def _own_loss_shifts(model: Ensemble, inputs: Mapping[str, Any], labels: Tensor) -> bool:
    """Whether the network's own loss compares position t with label t + 1, as causal language models' losses do.

    If so, nothing is compared with the label at the first position, and another label there leaves the loss the same.
    """
    if "labels" not in model.edge.names or labels.ndim != 2 or not labels.numel():
        return False
    labels = labels.to(model.device)
    other = labels.clone()
    other[:, 0] = (labels[:, 0] == 0).to(labels.dtype)  # another class: 1 for 0, else 0
    with evaluating(model):
        outputs = [model(**inputs, labels=given, member=0) for given in (labels, other)]
    one, two = (output.get("loss") if isinstance(output, Mapping) else None for output in outputs)
    return one is not None and two is not None and bool(torch.isclose(one, two, rtol=1e-7, atol=0, equal_nan=True))


def _inputs_and_labels(batch: Any) -> tuple[tuple[Any, ...], dict[str, Any], Tensor]:
    if isinstance(batch, Mapping) and "labels" in batch:
        return (), {name: value for name, value in batch.items() if name != "labels"}, batch["labels"]
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise TypeError(f"a batch must be (inputs, labels) or a dict with 'labels', got {type(batch).__name__}")
    inputs, labels = batch
    if isinstance(inputs, Mapping):
        return (), dict(inputs), labels
    return tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,), {}, labels


def _similarity(model: Ensemble) -> dict[str, dict[str, float]]:
    similar: dict[str, dict[str, float]] = {}
    for name, module in member_modules(model.net):
        for side, tensor in module.stacked_tensors():
            if side in ("r", "s"):
                similar.setdefault(name, {})[side] = metrics.cosine_similarity(tensor.detach().double().cpu())
    return similar
