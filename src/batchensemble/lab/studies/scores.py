"""Metrics computed from predictions; everything after `Prediction` needs neither network nor device."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from batchensemble import Prediction, metrics


def scores(prediction: Prediction, labels: Tensor) -> dict[str, float]:
    """Quality and calibration of the combined prediction."""
    probs, log_probs = prediction.probs, prediction.combined
    return {
        "accuracy": metrics.accuracy(probs, labels),
        "nll": metrics.nll_from_log_probs(log_probs, labels),
        "brier": metrics.brier(probs, labels),
        "ece": metrics.ece(probs, labels),
        "adaptive_ece": metrics.adaptive_ece(probs, labels),
    }


def scaled(prediction: Prediction, labels: Tensor) -> dict[str, float]:
    """The NLL after temperature scaling, fitted on one half of the rows and measured on the other."""
    generator = torch.Generator().manual_seed(0)
    return {"scaled_nll": metrics.temperature_scaled_nll(prediction.combined, labels, generator)}


def diversity(prediction: Prediction, labels: Tensor) -> dict[str, Any]:
    """The members' own accuracy and how much they differ, over all pairs and from the first member."""
    probs = replace(prediction, outputs=prediction.outputs.double()).member_probs  # divergences need the smallest ones
    base, base_kl = metrics.base_disagreement(probs), metrics.base_kl(probs)
    return {
        "member_accuracy": metrics.member_accuracy(probs, labels),
        "disagreement": metrics.disagreement(probs),
        "disagreement_over_error": metrics.disagreement_over_error(probs, labels),
        "pairwise_kl": metrics.pairwise_kl(probs),
        "pairwise_kl_over_error": metrics.pairwise_kl_over_error(probs, labels),
        "base_disagreement": base,
        "base_disagreement_over_error": metrics.over_member_error(base, probs, labels),
        "base_kl": base_kl,
        "base_kl_over_error": metrics.over_member_error(base_kl, probs, labels),
        "mutual_information": prediction.mutual_information.mean(),
    }


def quality(prediction: Prediction, labels: Tensor) -> dict[str, Any]:
    """All of the above."""
    return {**scores(prediction, labels), **scaled(prediction, labels), **diversity(prediction, labels)}


def detection(known: Prediction, unknown: Prediction) -> dict[str, float]:
    """How well entropy separates unseen classes from known ones, and what members disagree about."""
    inside, outside = known.entropy, unknown.entropy
    return {
        "auroc": metrics.auroc(inside, outside),
        "aupr": metrics.aupr(inside, outside),
        "fpr95": metrics.fpr95(inside, outside),
        "entropy_known": float(inside.mean()),
        "entropy_unknown": float(outside.mean()),
        "information_known": float(known.mutual_information.mean()),
        "information_unknown": float(unknown.mutual_information.mean()),
    }
