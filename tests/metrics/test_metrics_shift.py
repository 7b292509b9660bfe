"""Telling unknown from known, against scikit-learn and scipy."""

import pytest
import scipy.stats
import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from batchensemble.metrics import aupr, auroc, entropy, fpr95


def scores(known: int, unknown: int, levels: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(known + unknown)
    values = torch.randn(known, generator=generator), 0.8 + torch.randn(unknown, generator=generator)
    return tuple(v if levels is None else (v * levels).round() / levels for v in values)


@pytest.mark.parametrize("levels", [None, 3], ids=["continuous", "tied"])
@pytest.mark.parametrize(("known", "unknown"), [(200, 150), (1, 1), (7, 1), (1, 7), (40, 20)])
def test_against_scikit_learn(known, unknown, levels) -> None:
    low, high = scores(known, unknown, levels)
    truth, score = torch.cat([torch.zeros(known), torch.ones(unknown)]), torch.cat([low, high])
    assert auroc(low, high) == pytest.approx(roc_auc_score(truth, score), abs=1e-12)
    assert aupr(low, high) == pytest.approx(average_precision_score(truth, score), abs=1e-12)
    false, true, _ = roc_curve(truth, score, drop_intermediate=False)
    assert fpr95(low, high) == pytest.approx(false[true >= 0.95 - 1e-9].min(), abs=1e-12)


def test_separated_reversed_and_constant() -> None:
    low, high = torch.arange(20.0), torch.arange(20.0) + 100
    assert (auroc(low, high), aupr(low, high), fpr95(low, high)) == (1, 1, 0)
    assert (auroc(high, low), fpr95(high, low)) == (0, 1)
    flat = torch.zeros(20)
    assert (auroc(flat, flat), aupr(flat, flat), fpr95(flat, flat)) == (0.5, 0.5, 1)


def test_nineteen_of_twenty_are_ninety_five_percent() -> None:
    unknown = torch.cat([torch.zeros(1), torch.ones(19)])
    assert fpr95(torch.tensor([0.0, 0.5]), unknown) == 0
    assert fpr95(torch.tensor([0.0, 0.5]), torch.cat([torch.zeros(2), torch.ones(18)])) == 1


def test_the_other_convention_is_the_negated_swap() -> None:
    known, unknown = scores(300, 200, None)
    threshold = known.sort().values[284]  # 95 % of 300 known rows lie at or below it
    assert fpr95(-unknown, -known) == pytest.approx((unknown <= threshold).double().mean().item())


def test_entropy() -> None:
    probs = torch.randn(50, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).softmax(-1)
    assert entropy(probs).tolist() == pytest.approx(scipy.stats.entropy(probs.numpy(), axis=-1).tolist())
    assert entropy(torch.eye(3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("metric", [auroc, aupr, fpr95])
def test_bad_scores(metric) -> None:
    good = torch.tensor([0.1, 0.2])
    for bad, message in [
        (torch.tensor([0.1, torch.nan]), "finite"),
        (torch.tensor([torch.inf]), "finite"),
        (torch.empty(0), "empty"),
        (torch.ones(2, 2), r"shape \(rows\), got \(2, 2\)"),
    ]:
        with pytest.raises(ValueError, match=f"scores of known rows.*{message}|{message}"):
            metric(bad, good)
        with pytest.raises(ValueError, match=f"unknown rows.*{message}|{message}"):
            metric(good, bad)
