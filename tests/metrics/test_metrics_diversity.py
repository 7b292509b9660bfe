"""Diversity against scipy, scikit-learn and loops over pairs."""

import math
from itertools import combinations, permutations

import pytest
import torch
from scipy.special import rel_entr
from sklearn.metrics import accuracy_score
from sklearn.metrics.pairwise import cosine_similarity as sklearn_cosine

from batchensemble.metrics import (
    base_disagreement,
    base_kl,
    cosine_similarity,
    disagreement,
    disagreement_over_error,
    member_accuracy,
    over_member_error,
    pairwise_kl,
    pairwise_kl_over_error,
)


@pytest.fixture(params=[2, 3, 6])
def probs(request) -> torch.Tensor:
    generator = torch.Generator().manual_seed(request.param)
    return (2 * torch.randn(request.param, 80, 4, generator=generator, dtype=torch.float64)).softmax(-1)


@pytest.fixture
def labels(probs) -> torch.Tensor:
    return torch.randint(4, (80,), generator=torch.Generator().manual_seed(9))


def kl(p: torch.Tensor, q: torch.Tensor) -> float:
    return rel_entr(p.numpy(), q.numpy()).sum(-1).mean().item()


def mean(values) -> float:
    values = list(values)
    return sum(values) / len(values)


def test_disagreement_is_the_mean_over_pairs(probs) -> None:
    choice = probs.argmax(-1)
    expected = mean((a != b).double().mean().item() for a, b in combinations(choice, 2))
    assert disagreement(probs) == pytest.approx(expected, abs=1e-12)


def test_pairwise_kl_is_the_mean_over_ordered_pairs(probs) -> None:
    assert pairwise_kl(probs) == pytest.approx(mean(kl(p, q) for p, q in permutations(probs, 2)), rel=1e-10)


def test_against_the_base_member(probs) -> None:
    choice = probs.argmax(-1)
    for base in (0, len(probs) - 1):
        expected = [(c != choice[base]).double().mean().item() for c in choice]
        assert base_disagreement(probs, base).tolist() == pytest.approx(expected)
        assert base_kl(probs, base).tolist() == pytest.approx([kl(probs[base], p) for p in probs], abs=1e-12)
        assert base_disagreement(probs, base)[base] == base_kl(probs, base)[base] == 0


def test_divided_by_the_error(probs, labels) -> None:
    accuracies = [accuracy_score(labels, p.argmax(-1)) for p in probs]
    assert member_accuracy(probs, labels).tolist() == pytest.approx(accuracies)
    error = 1 - mean(accuracies)
    assert disagreement_over_error(probs, labels) == pytest.approx(disagreement(probs) / error)
    assert pairwise_kl_over_error(probs, labels) == pytest.approx(pairwise_kl(probs) / error)
    found = over_member_error(base_kl(probs), probs, labels)
    expected = [value / (1 - a) for value, a in zip(base_kl(probs).tolist(), accuracies, strict=True)]
    assert found.tolist() == pytest.approx(expected)


def test_copies_have_no_diversity(probs, labels) -> None:
    copies = probs[:1].expand(5, -1, -1)
    assert disagreement(copies) == disagreement_over_error(copies, labels) == 0
    assert pairwise_kl(copies) == pytest.approx(0, abs=1e-14)
    assert pairwise_kl(copies) >= 0
    assert base_disagreement(copies).tolist() == [0] * 5
    assert base_kl(copies).tolist() == [0] * 5


def test_one_member_has_no_diversity_and_no_nan(probs, labels) -> None:
    alone = probs[:1]
    assert disagreement(alone) == pairwise_kl(alone) == 0
    assert disagreement_over_error(alone, labels) == pairwise_kl_over_error(alone, labels) == 0
    assert base_disagreement(alone).tolist() == base_kl(alone).tolist() == [0]
    assert over_member_error(base_kl(alone), alone, labels).tolist() == [0]
    assert cosine_similarity(torch.ones(1, 3)) == 1


def test_members_without_error() -> None:
    right = torch.tensor([[[0.9, 0.1]], [[0.8, 0.2]], [[0.4, 0.6]]])
    label = torch.tensor([0])
    assert disagreement_over_error(right[:2], label) == 0
    assert pairwise_kl_over_error(right[:2], label) == math.inf
    assert over_member_error(base_disagreement(right, 2), right, label).tolist() == [math.inf, math.inf, 0]


def test_zeros_are_taken_at_their_word() -> None:
    certain, unsure = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.5, 0.5, 0.0]])
    assert pairwise_kl(torch.stack([certain, certain])) == 0
    assert pairwise_kl(torch.stack([certain, unsure])) == math.inf
    assert base_kl(torch.stack([certain, unsure])).tolist() == pytest.approx([0, math.log(2)])
    assert base_kl(torch.stack([unsure, certain])).tolist() == [0, math.inf]


@pytest.mark.parametrize("shape", [(4, 10), (3, 2, 10), (2, 1)])
def test_cosine_similarity_is_the_mean_over_pairs(shape) -> None:
    vectors = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrix = sklearn_cosine(vectors.flatten(1))
    expected = mean(matrix[i, j] for i, j in combinations(range(len(vectors)), 2))
    assert cosine_similarity(vectors) == pytest.approx(expected, abs=1e-12)


def test_cosine_similarity_of_copies_opposites_and_zeros() -> None:
    vector = torch.tensor([1.0, -2.0, 3.0])
    assert cosine_similarity(torch.stack([vector, 1e-30 * vector])) == pytest.approx(1)
    assert cosine_similarity(torch.stack([vector, -vector])) == pytest.approx(-1)
    assert cosine_similarity(torch.stack([vector, torch.zeros(3)])) == 0


def test_bad_input() -> None:
    probs = torch.full((3, 2, 2), 0.5)
    for function in (disagreement, pairwise_kl, base_disagreement, base_kl):
        with pytest.raises(ValueError, match=r"\(members, rows, classes\), got \(2, 2\)"):
            function(probs[0])
        with pytest.raises(ValueError, match="NaN"):
            function(probs * torch.nan)
    for base in (-1, 3):
        with pytest.raises(IndexError, match=rf"in \[0, 3\), got {base}"):
            base_kl(probs, base)
    with pytest.raises(ValueError, match=r"expected 3 values, one per member, got shape \(2,\)"):
        over_member_error(torch.zeros(2), probs, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"\(members, d\), got \(3,\)"):
        cosine_similarity(torch.ones(3))
    with pytest.raises(ValueError, match="fast weights must be finite"):
        cosine_similarity(torch.full((2, 2), torch.nan))


def test_nearly_equal_members_have_no_negative_divergence() -> None:
    probs = torch.tensor([[[0.2, 0.8]], [[0.2 + 1e-9, 0.8 - 1e-9]]], dtype=torch.float64)  # -6e-17 by rounding
    assert base_kl(probs).tolist() == [0, 0]
