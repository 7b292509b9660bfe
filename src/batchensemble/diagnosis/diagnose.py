"""Is it really an ensemble? How different the members are on your data, and what that is worth."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from batchensemble import metrics
from batchensemble.diagnosis.findings import Diagnosis, RegressionDiagnosis
from batchensemble.ensemble import Ensemble, check_ensemble
from batchensemble.nn.layers.member import member_modules
from batchensemble.nn.mode import evaluating
from batchensemble.nn.trees import map_tensors
from batchensemble.prediction import CLASSIFYING, Prediction

IGNORED = -100  # torch's label for positions that do not count


def diagnose(model: Ensemble, loader: Iterable[Any]) -> Diagnosis | RegressionDiagnosis:
    """Measure how different the members are on labelled data, and what averaging them is worth.

    Args:
        model: an ensemble of classifiers (`combine` "softmax", "vote", or "sigmoid", where each label is a question of
            two classes), or of networks that predict numbers ("mean"), which gets a `RegressionDiagnosis`.
        loader: batches `(inputs, labels)`, the inputs a tensor, a tuple or keywords in a dict (`((dict,), labels)` for
            a network that takes a dict), with one label for each answer; or dicts with `labels`, compared as the
            network's own loss does: those of a causal language model are shifted. Labels of -100 are left out.
            Sigmoids have labels of 0 or 1, and numbers targets, in the shape of the answers. Inputs are moved to the
            model's device.

    Examples:
        >>> import batchensemble as be
        >>> same = be.convert(torch.nn.Linear(4, 3), members=2, init="ones")
        >>> be.diagnose(same, [(torch.randn(8, 4), torch.arange(8) % 3)]).collapsed
        True
    """
    check_ensemble(model)
    if model.settings.combine == "mean":
        return _of_numbers(model, *_numbers(model, loader))
    if model.settings.combine not in CLASSIFYING:
        raise ValueError(f"diagnose compares classes, or numbers with combine='mean', not {model.settings.combine!r}")
    return _of_classes(model, *_answers(model, loader))


def _of_classes(model: Ensemble, member_probs: Tensor, labels: Tensor) -> Diagnosis:
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


def _of_numbers(model: Ensemble, outputs: Tensor, targets: Tensor) -> RegressionDiagnosis:
    """From members' numbers `(members, rows, ...)` and targets `(rows, ...)`."""
    everyone = torch.cat([outputs, outputs.mean(0, keepdim=True)])  # the ensemble comes last
    squares = (everyone - targets).square().unsqueeze(2).flatten(2).mean(2)  # (members + 1, rows)
    errors = squares.mean(1)
    smaller = squares[errors[:-1].argmin()] - squares[-1]
    return RegressionDiagnosis(
        members=len(model),
        rows=len(targets),
        similarity=_similarity(model) if len(model) > 1 else {},
        spread=outputs.var(0, correction=0).mean().sqrt().item(),
        variation=outputs.mean(0).var(0, correction=0).mean().sqrt().item(),
        member_rmse=tuple(errors[:-1].sqrt().tolist()),
        rmse=errors[-1].sqrt().item(),
        mse_gain=smaller.mean().item(),
        mse_gain_error=_standard_error(smaller),
    )


def _gains(member_probs: Tensor, labels: Tensor) -> dict[str, float]:
    """What averaging gains, row by row: accuracy over the mean member, likelihood over the best one."""
    everyone = torch.cat([member_probs, member_probs.mean(0, keepdim=True)])  # the ensemble comes last
    right = (everyone.argmax(-1) == labels).double()
    rows = torch.arange(len(labels), device=labels.device)
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
        args, kwargs, labels = _inputs_and_labels(batch, model.device)
        if isinstance(batch, Mapping):
            if not found:
                shifts = _own_loss_shifts(model, kwargs, labels)
            if "labels" in model.edge.names:  # an encoder-decoder derives its decoder's inputs from them
                kwargs["labels"] = labels.to(model.device)
        labels = F.pad(labels, (0, 1), value=IGNORED)[:, 1:] if shifts else labels
        probs, labels = _classified(model, args, kwargs, labels)
        found.append(probs[:, labels != IGNORED])
        wanted.append(labels[labels != IGNORED])
    if not found:
        raise ValueError("the loader gave no batch to diagnose")
    if not any(map(len, wanted)):
        raise ValueError(f"the loader gave no row whose label counts: there are none, or all are {IGNORED}")
    return torch.cat(found, 1), torch.cat(wanted)


def _classified(model: Ensemble, args: Any, kwargs: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Members' probabilities for a batch, `(members, N, ..., classes)`, and its labels, `(N, ...)`."""
    prediction, rows = _predicted(model, args, kwargs)
    outputs = prediction.outputs.cpu().double()  # float32 has no probability below 1e-45
    if prediction.combine == "sigmoid":
        answers = torch.stack([torch.zeros_like(outputs), outputs], -1).softmax(-1)  # two classes with logits 0 and x
        labels = _two_classes(labels)
    else:
        classes = prediction.class_dim % (outputs.ndim - 1) + 1
        answers = replace(prediction, outputs=outputs).member_probs.movedim(classes, -1)
        if model.settings.class_dim % (outputs.ndim - 1) < rows:  # labels lack the axis of the classes
            rows -= 1
    aligned = _rows_first(labels.cpu(), rows)
    if aligned.shape != answers.shape[1:-1]:
        raise ValueError(f"labels {tuple(labels.shape)} are not one for each of the answers {tuple(outputs.shape[1:])}")
    return answers, aligned


def _two_classes(labels: Tensor) -> Tensor:
    strange = labels[(labels != 0) & (labels != 1) & (labels != IGNORED)]
    if len(strange):
        raise ValueError(f"with combine='sigmoid' labels are 0 or 1 ({IGNORED} is left out), got {strange[0].item()}")
    return labels.long()


def _numbers(model: Ensemble, loader: Iterable[Any]) -> tuple[Tensor, Tensor]:
    """Members' numbers `(members, rows, ...)` and targets `(rows, ...)`."""
    found: list[Tensor] = []
    wanted: list[Tensor] = []
    for batch in loader:
        args, kwargs, targets = _inputs_and_labels(batch, model.device)
        prediction, rows = _predicted(model, args, kwargs)
        outputs, targets = prediction.outputs.double().cpu(), targets.double().cpu()
        aligned = _rows_first(targets, rows)
        if aligned.shape != outputs.shape[1:]:  # broadcasting would compare every target with every answer
            shapes = f"targets {tuple(targets.shape)}, answers {tuple(outputs.shape[1:])}"
            raise ValueError(f"numbers are compared with targets of the same shape, got {shapes}")
        found.append(outputs)
        wanted.append(aligned)
    if not any(map(len, wanted)):
        raise ValueError("the loader gave no row to diagnose")
    return torch.cat(found, 1), torch.cat(wanted)


def _predicted(model: Ensemble, args: Any, kwargs: Any) -> tuple[Prediction, int]:
    """What `predict` returns, and the axis of the rows in one member's answer."""
    with evaluating(model), torch.no_grad():
        answers = model.answers(*args, **kwargs)
    return answers.prediction(model.settings.combine), answers.axis


def _rows_first(labels: Tensor, axis: int) -> Tensor:
    """Move the rows to the front, as in a prediction."""
    return labels.movedim(axis, 0) if labels.ndim > axis else labels


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


def _inputs_and_labels(batch: Any, device: torch.device) -> tuple[tuple[Any, ...], dict[str, Any], Tensor]:
    """A batch's positional and keyword inputs on a device, and its labels where they are, integers as int64."""
    if isinstance(batch, Mapping) and "labels" in batch:
        inputs, labels = {name: value for name, value in batch.items() if name != "labels"}, batch["labels"]
    elif isinstance(batch, tuple | list) and len(batch) == 2:
        inputs, labels = batch
    else:
        raise TypeError(
            f"a batch must be (inputs, labels) or a dict with 'labels', got {type(batch).__name__}; "
            "the loader gives such batches: for a single one, pass [(inputs, labels)]"
        )
    if isinstance(labels, int) or (isinstance(labels, Tensor) and labels.ndim == 0):
        raise TypeError("got a single label where a batch of them was expected: pass a DataLoader, not its Dataset")
    if not isinstance(labels, Tensor):
        raise TypeError(f"labels must be a tensor, got {type(labels).__name__}: torch.as_tensor makes one")
    if isinstance(inputs, Mapping):
        args, kwargs = (), dict(inputs)
    else:
        args, kwargs = (tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)), {}
    args, kwargs = map_tensors(lambda tensor: tensor.to(device), (args, kwargs))
    # a uint8 would index as a mask, and -100 would be its 156
    return args, kwargs, (labels if labels.is_floating_point() else labels.long())


def _similarity(model: Ensemble) -> dict[str, dict[str, float]]:
    similar: dict[str, dict[str, float]] = {}
    for name, module in member_modules(model.net):
        for side, tensor in module.stacked_tensors():
            if side in module.fast_weights:
                similar.setdefault(name, {})[side] = metrics.cosine_similarity(tensor.detach().double().cpu())
    return similar
