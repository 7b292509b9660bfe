"""How much members differ: disagreement, divergence, similarity of their fast weights.

Probabilities of members have the shape `(members, rows, classes)`. The pairwise measures average over all
pairs; the `base_` measures compare every member with one of them, as Fort et al. (2019) and the paper's
figure do. One member alone has no diversity: disagreement 0, divergence 0, similarity 1.
"""

import torch
from torch import Tensor

from batchensemble.metrics.checks import checked_labels, checked_probs, checked_values

MEMBER_AXES = ("members", "rows", "classes")


def member_accuracy(member_probs: Tensor, labels: Tensor) -> Tensor:
    """Accuracy of every member `(members,)`.

    Examples:
        >>> probs = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]])
        >>> member_accuracy(probs, torch.tensor([0, 1])).tolist()
        [1.0, 0.5]
    """
    probs = checked_probs(member_probs, MEMBER_AXES)
    return (probs.argmax(-1) == checked_labels(labels, probs)).double().mean(-1)


def disagreement(member_probs: Tensor) -> float:
    """Share of pairs of members, over all rows, that choose different classes.

    With `n_c` members for class c it is `1 - sum_c n_c (n_c - 1) / (M (M - 1))`, averaged over rows.

    Examples:
        >>> probs = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]])
        >>> disagreement(probs)
        0.5
    """
    probs = checked_probs(member_probs, MEMBER_AXES)
    members = len(probs)
    if members == 1:
        return 0.0
    choice = probs.argmax(-1).T  # (rows, members)
    votes = torch.zeros_like(probs[0]).scatter_add(-1, choice, torch.ones_like(choice, dtype=probs.dtype))
    agreeing = (votes * (votes - 1)).sum(-1)
    return 1 - agreeing.mean().item() / (members * (members - 1))


def pairwise_kl(member_probs: Tensor) -> float:
    """`KL(p_i || p_j)` in nats, averaged over rows and ordered pairs of members.

    Infinite where one member rules out what another considers possible, as the formula says.

    Examples:
        >>> probs = torch.tensor([[[0.5, 0.5]], [[0.25, 0.75]]])
        >>> round(pairwise_kl(probs), 4)
        0.1373
    """
    probs = checked_probs(member_probs, MEMBER_AXES)
    members = len(probs)
    if members == 1:
        return 0.0
    # sum_ij KL = M sum_i p_i log p_i - (sum_i p_i)(sum_j log p_j): no pair is ever built.
    own = members * torch.xlogy(probs, probs).sum(0)
    mass = probs.sum(0)
    cross = torch.where(mass > 0, mass * probs.log().sum(0), 0)
    return max(0.0, (own - cross).sum(-1).mean().item() / (members * (members - 1)))


def disagreement_over_error(member_probs: Tensor, labels: Tensor) -> float:
    """`disagreement` divided by the members' mean error, since members that guess differ as well.

    It is 0 for members without error, which have nothing to disagree about.

    Examples:
        >>> probs = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]])
        >>> disagreement_over_error(probs, torch.tensor([0, 1]))
        2.0
    """
    error = 1 - member_accuracy(member_probs, labels).mean()
    return _over(error.new_tensor(disagreement(member_probs)), error).item()


def pairwise_kl_over_error(member_probs: Tensor, labels: Tensor) -> float:
    """`pairwise_kl` divided by the members' mean error; infinite for members that differ without error.

    Examples:
        >>> probs = torch.tensor([[[0.5, 0.5]], [[0.25, 0.75]]])
        >>> round(pairwise_kl_over_error(probs, torch.tensor([1])), 4)
        0.2747
    """
    error = 1 - member_accuracy(member_probs, labels).mean()
    return _over(error.new_tensor(pairwise_kl(member_probs)), error).item()


def base_disagreement(member_probs: Tensor, base: int = 0) -> Tensor:
    """Share of rows on which each member's class differs from the base's `(members,)`; the base has 0.

    Examples:
        >>> probs = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]])
        >>> base_disagreement(probs).tolist()
        [0.0, 0.5]
    """
    probs = checked_probs(member_probs, MEMBER_AXES)
    choice = probs.argmax(-1)
    return (choice != choice[_checked_base(base, len(probs))]).double().mean(-1)


def base_kl(member_probs: Tensor, base: int = 0) -> Tensor:
    """`KL(p_base || p_i)` in nats for every member, averaged over rows `(members,)`; the base has 0.

    Examples:
        >>> base_kl(torch.tensor([[[0.5, 0.5]], [[0.25, 0.75]]]))
        tensor([0.0000, 0.1438], dtype=torch.float64)
    """
    probs = checked_probs(member_probs, MEMBER_AXES)
    of_base = probs[_checked_base(base, len(probs))]
    divergence = torch.xlogy(of_base, of_base) - torch.xlogy(of_base, probs)
    return divergence.sum(-1).mean(-1).clamp(min=0)


def over_member_error(diversity: Tensor, member_probs: Tensor, labels: Tensor) -> Tensor:
    """A `base_` measure divided by each member's own error `(members,)`.

    For a member without error it is 0 if there is no diversity either, and otherwise infinite.

    Examples:
        >>> probs = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]])
        >>> over_member_error(base_disagreement(probs), probs, torch.tensor([0, 1])).tolist()
        [0.0, 1.0]
    """
    error = 1 - member_accuracy(member_probs, labels)
    if diversity.shape != error.shape:
        raise ValueError(f"expected {len(error)} values, one per member, got shape {tuple(diversity.shape)}")
    return _over(diversity.to(error), error)


def cosine_similarity(vectors: Tensor) -> float:
    """Cosine between members' fast weights, averaged over pairs: 1 is a copy, 0 unrelated, -1 opposite.

    Args:
        vectors: `(members, d)`, or `(members, rank, d)`, compared as vectors of `rank * d` numbers. A
            vector of zeros is similar to nothing: 0.

    Examples:
        >>> round(cosine_similarity(torch.tensor([[1.0, 1.0], [1.0, -1.0], [2.0, 2.0]])), 4)  # 0, 0 and 1
        0.3333
    """
    axes = ("members", "rank", "d") if vectors.ndim == 3 else ("members", "d")
    vectors = checked_values(vectors, "fast weights", axes)
    members = len(vectors)
    if members == 1:
        return 1.0
    unit = torch.nn.functional.normalize(vectors.flatten(1), dim=-1, eps=torch.finfo(torch.float64).tiny)
    # |sum_i u_i|^2 holds every ordered pair and every member with itself.
    pairs = unit.sum(0).square().sum() - unit.square().sum()
    return pairs.item() / (members * (members - 1))


def _checked_base(base: int, members: int) -> int:
    if not 0 <= base < members:
        raise IndexError(f"base must be a member in [0, {members}), got {base}")
    return base


def _over(diversity: Tensor, error: Tensor) -> Tensor:
    return torch.where(diversity == 0, 0.0, diversity / error)
