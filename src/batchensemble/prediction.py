"""What an ensemble answers, and how sure it is.

The member axis is explicit here: `outputs` are `(members, N, ...)`, every member's answer for every row.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

Rule: TypeAlias = Literal["softmax", "sigmoid", "mean", "vote"]
Combine: TypeAlias = Rule | Callable[[Tensor], Tensor] | None
RULES: tuple[Rule, ...] = get_args(Rule)
CLASSIFYING: tuple[Rule, ...] = ("softmax", "sigmoid", "vote")


def check_combine(combine: Combine) -> None:
    """Refuse anything that is not a way to combine members.

    Examples:
        >>> check_combine("median")
        Traceback (most recent call last):
        ...
        ValueError: combine must be 'softmax', 'sigmoid', 'mean', 'vote', a callable or None, got 'median'
    """
    if not (combine is None or callable(combine) or combine in RULES):
        known = ", ".join(map(repr, RULES))
        raise ValueError(f"combine must be {known}, a callable or None, got {combine!r}")


def combine_outputs(outputs: Tensor, combine: Combine, class_dim: int = -1) -> Tensor:
    """Combine all members' outputs into one answer.

    | `combine` | outputs are | the answer |
    |---|---|---|
    | `"softmax"` | logits over `class_dim` | log of the mean probability |
    | `"sigmoid"` | binary or multi-label logits | log-odds of the mean probability |
    | `"mean"` | values | their mean |
    | `"vote"` | logits over `class_dim` | log of the share of votes; minus infinity for none |
    | a callable | anything | `combine(outputs)` |

    Half-precision outputs are combined in float32, and the answer has their dtype again; for integers it is float32.

    Args:
        outputs: `(members, N, ...)`.
        combine: the rule.
        class_dim: axis of the classes in one member's output `(N, ...)`.

    Returns:
        `(N, ...)`.

    Examples:
        >>> outputs = torch.tensor([[[0.8, 0.2]], [[0.4, 0.6]]]).log()
        >>> combine_outputs(outputs, "softmax").exp()
        tensor([[0.6000, 0.4000]])
    """
    check_combine(combine)
    if combine is None:
        raise ValueError("combine=None means that the members share no answer: choose one with member=")
    if callable(combine):
        return _one_for_each_row(combine(outputs), outputs)
    wide = _at_least_float32(outputs)
    if combine == "mean":
        answer = wide.mean(0)
    elif combine == "sigmoid":
        # The log M of both means cancels in the log-odds.
        answer = _logsumexp(F.logsigmoid(wide)) - _logsumexp(F.logsigmoid(-wide))
    elif combine == "softmax":
        answer = _logsumexp(wide.log_softmax(_class_axis(outputs, class_dim))) - math.log(len(outputs))
    else:
        answer = (_votes(wide, _class_axis(outputs, class_dim)) / len(outputs)).log()
    return answer.to(outputs.dtype) if outputs.is_floating_point() else answer


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """Every member's answer, and what follows from it, computed when first asked for.

    Half-precision outputs stay as they came; everything derived from them is computed in float32. What a rule
    leaves undefined (the probabilities of a regression) raises `AttributeError`. Entropies are in nats.
    `p[:3]`, `p[p.entropy > 1]`, `p[[4, 2]]` are predictions for some of the rows, and so is `p[0]`, for one.

    Args:
        outputs: `(members, N, ...)` as the network gave them.
        combine: how members become one answer, as in `convert`.
        class_dim: axis of the classes in one member's output `(N, ...)`.

    Examples:
        >>> prediction = Prediction(torch.tensor([[[0.8, 0.2]], [[0.4, 0.6]]]).log())
        >>> prediction
        Prediction((2, 1, 2), 'softmax', entropy=0.673, mutual_information=0.0863, disagreement=1)
        >>> prediction.probs, prediction.label, prediction.member_labels.T
        (tensor([[0.6000, 0.4000]]), tensor([0]), tensor([[0, 1]]))
    """

    outputs: Tensor
    combine: Combine = "softmax"
    class_dim: int = -1

    def __post_init__(self) -> None:
        check_combine(self.combine)
        if not self.outputs.is_floating_point():
            raise TypeError(f"expected floating-point outputs, got {self.outputs.dtype}")
        if self.outputs.ndim < 2 or not len(self.outputs):
            raise ValueError(f"expected outputs of shape (members, N, ...), got {tuple(self.outputs.shape)}")
        if self.combine in ("softmax", "vote"):
            _class_axis(self.outputs, self.class_dim)

    @classmethod
    def cat(cls, parts: Iterable["Prediction"]) -> "Prediction":
        """Join predictions for several batches, row after row.

        Examples:
            >>> len(Prediction.cat([Prediction(torch.zeros(4, 3, 5)), Prediction(torch.zeros(4, 2, 5))]))
            5
        """
        parts = list(parts)
        if not parts:
            raise ValueError("expected at least one prediction to join, got none")
        first = parts[0]
        for part in parts:
            if (part.combine, part.class_dim) != (first.combine, first.class_dim):
                raise ValueError(f"predictions to join are combined differently: {first!r} and {part!r}")
            if (len(part.outputs), part.outputs.shape[2:]) != (len(first.outputs), first.outputs.shape[2:]):
                shapes = f"{tuple(first.outputs.shape)} and {tuple(part.outputs.shape)}"
                raise ValueError(f"predictions to join must agree in all axes but the rows, got {shapes}")
        return cls(torch.cat([part.outputs for part in parts], dim=1), first.combine, first.class_dim)

    def __len__(self) -> int:
        return self.outputs.shape[1]

    def __getitem__(self, rows: Any) -> "Prediction":
        chosen = torch.arange(len(self), device=self.outputs.device)[rows]
        return replace(self, outputs=self.outputs[:, chosen.reshape(-1)])

    def to(self, *args: Any, **kwargs: Any) -> "Prediction":
        """As `torch.Tensor.to`: on another device, `p.to("cpu")`, or in another precision."""
        return replace(self, outputs=self.outputs.to(*args, **kwargs))

    def __repr__(self) -> str:
        parts = [f"{tuple(self.outputs.shape)}", f"{self.combine!r}"]
        if self.outputs.numel() and isinstance(self.combine, str):
            parts += [f"{name}={getattr(self, name).mean().item():.3g}" for name in _SHOWN[self.combine]]
        return f"Prediction({', '.join(parts)})"

    @cached_property
    def combined(self) -> Tensor:
        """The one answer `(N, ...)` of all members; softmax: the log of `probs`, without underflow."""
        return combine_outputs(self._wide, self.combine, self.class_dim)

    @cached_property
    def member_probs(self) -> Tensor:
        """Every member's probabilities `(members, N, ...)`, over the classes or (sigmoid) for each label."""
        self._needs("member_probs", *CLASSIFYING)
        return self._wide.sigmoid() if self._is_binary else self._wide.softmax(self._axis)

    @cached_property
    def probs(self) -> Tensor:
        """The ensemble's probabilities `(N, ...)`: the mean over members, or the share of votes."""
        self._needs("probs", *CLASSIFYING)
        return self._votes / len(self.outputs) if self.combine == "vote" else self.member_probs.mean(0)

    @cached_property
    def member_labels(self) -> Tensor:
        """Every member's own `label` `(members, N, ...)`."""
        self._needs("member_labels", *CLASSIFYING)
        return self._choice(self.member_probs if self._is_binary else self._wide)

    @cached_property
    def label(self) -> Tensor:
        """The ensemble's choice `(N, ...)` without the class axis; for sigmoids 1 where p > 1/2, else 0."""
        self._needs("label", *CLASSIFYING)
        return self._choice(self.probs)

    @cached_property
    def confidence(self) -> Tensor:
        """Probability of `label`, in its shape."""
        self._needs("confidence", *CLASSIFYING)
        return torch.maximum(self.probs, 1 - self.probs) if self._is_binary else self.probs.amax(self._axis)

    @cached_property
    def entropy(self) -> Tensor:
        """Total uncertainty: the entropy of `probs`, in the shape of `label`."""
        self._needs("entropy", *CLASSIFYING)
        return self._entropy(self.probs)

    @cached_property
    def expected_entropy(self) -> Tensor:
        """What each member is unsure about by itself: the mean of their entropies, in the shape of `label`."""
        self._needs("expected_entropy", "softmax", "sigmoid")
        return self._entropy(self.member_probs).mean(0)

    @cached_property
    def mutual_information(self) -> Tensor:
        """What members disagree about: `entropy` - `expected_entropy`, never negative."""
        self._needs("mutual_information", "softmax", "sigmoid")
        return (self.entropy - self.expected_entropy).clamp(min=0)

    @cached_property
    def disagreement(self) -> Tensor:
        """Share of pairs of members whose labels differ, in the shape of `label`; 0 for one member."""
        self._needs("disagreement", *CLASSIFYING)
        members = len(self.outputs)
        if self._is_binary:
            ones = self.member_labels.sum(0)
            differing = 2 * ones * (members - ones)
        else:
            # Of M (M - 1) ordered pairs, n_c (n_c - 1) agree on class c.
            differing = members * (members - 1) - (self._votes * (self._votes - 1)).sum(self._axis)
        return differing.to(self._wide.dtype) / max(1, members * (members - 1))

    @cached_property
    def mean(self) -> Tensor:
        """The members' mean `(N, ...)`, for regression."""
        self._needs("mean", "mean")
        return self.combined

    @cached_property
    def std(self) -> Tensor:
        """The members' population standard deviation `(N, ...)`, for regression."""
        self._needs("std", "mean")
        return self._wide.std(0, correction=0)

    @cached_property
    def _wide(self) -> Tensor:
        return _at_least_float32(self.outputs)

    @cached_property
    def _votes(self) -> Tensor:
        return _votes(self._wide, self._axis)

    @property
    def _axis(self) -> int:
        return _class_axis(self.outputs, self.class_dim)

    @property
    def _is_binary(self) -> bool:
        return self.combine == "sigmoid"

    def _choice(self, scores: Tensor) -> Tensor:
        return (scores > 0.5).long() if self._is_binary else scores.argmax(self._axis)

    def _entropy(self, probs: Tensor) -> Tensor:
        terms = _entropy_terms(probs)
        return terms + _entropy_terms(1 - probs) if self._is_binary else terms.sum(self._axis)

    def _needs(self, name: str, *rules: Rule) -> None:
        if self.combine not in rules:
            why = _WHY_NOT["callable" if callable(self.combine) else self.combine]
            needed = " or ".join(map(repr, rules))
            raise AttributeError(f"no {name} with combine={self.combine!r}, {why}: it needs combine={needed}")


_SHOWN: dict[Rule, tuple[str, ...]] = {
    "softmax": ("entropy", "mutual_information", "disagreement"),
    "sigmoid": ("entropy", "mutual_information", "disagreement"),
    "vote": ("entropy", "disagreement"),
    "mean": ("std",),
}
_WHY_NOT: dict[str | None, str] = {
    "softmax": "whose outputs are logits",
    "sigmoid": "whose outputs are logits",
    "vote": "since a vote does not say how sure the voter was",
    "mean": "since a regression has no classes",
    "callable": "since a rule of your own does not say what the outputs are",
    None: "since these members share no answer",
}


def _one_for_each_row(answer: Tensor, outputs: Tensor) -> Tensor:
    """Refuse what a rule of the user's own made of the wrong axis; in a graph, sizes are not to be compared."""
    is_tensor = isinstance(answer, Tensor) and not torch.compiler.is_compiling()
    if is_tensor and answer.shape[:1] != outputs.shape[1:2]:
        raise ValueError(
            f"combine got the outputs {tuple(outputs.shape)}, members first, and must return an answer for each of "
            f"the {outputs.shape[1]} rows; it returned {tuple(answer.shape)}"
        )
    return answer


def _at_least_float32(outputs: Tensor) -> Tensor:
    return outputs.to(torch.promote_types(outputs.dtype, torch.float32))


def _logsumexp(logs: Tensor) -> Tensor:
    """Logsumexp over members; a class that all of them rule out (a mask) has no gradient, where torch's is NaN."""
    # The mode, not the tensor, which cannot tell under vmap; jit.trace traces twice, the last time without gradients.
    if not torch.is_grad_enabled() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return logs.logsumexp(0)
    possible = (logs != -math.inf).any(0)
    return torch.where(possible, torch.where(possible, logs, 0).logsumexp(0), -math.inf)


def _entropy_terms(probs: Tensor) -> Tensor:
    """`-p log p` with finite gradients at 0; `special.entr` has infinite ones, and torch 2.11 no ONNX form of it."""
    return -torch.xlogy(probs, probs.clamp_min(torch.finfo(probs.dtype).tiny))


def _class_axis(outputs: Tensor, class_dim: int) -> int:
    """The class axis counted from the end, so that it holds with and without the member axis."""
    shape = tuple(outputs.shape[1:])
    instead = "use combine='sigmoid' for binary or multi-label logits, combine='mean' for regression"
    if not -len(shape) <= class_dim < len(shape):
        raise ValueError(f"class_dim={class_dim} is no axis of one member's outputs {shape}")
    axis = class_dim % len(shape)
    if axis == 0:
        raise ValueError(f"class_dim={class_dim} holds the rows of one member's outputs {shape}: {instead}")
    if shape[axis] == 1:
        raise ValueError(f"class_dim={class_dim} holds one class in a member's outputs {shape}: {instead}")
    return axis - len(shape)


def _votes(outputs: Tensor, axis: int) -> Tensor:
    """How many members choose each class `(N, ...)`; no one-hot of every member is built."""
    choice = outputs.argmax(axis, keepdim=True).transpose(0, axis)[0]  # members where the classes were
    one = torch.ones_like(choice, dtype=outputs.dtype)
    return torch.zeros_like(outputs[0]).scatter_add(axis, choice, one)
