"""Decisions that await their rewards, and those that have them: the replay buffer."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from batchensemble.bandits.journal import Event

ROOM = 1024  # observations that a buffer has room for at first; it doubles when full


@dataclass(frozen=True)
class Decisions:
    """What was decided, one entry per context.

    Attributes:
        ids: by which rewards are reported, `(N,)`.
        arms: what to do, `(N,)`.
        members: which members decided, `(N,)`.
    """

    ids: Tensor
    arms: Tensor
    members: Tensor

    def __len__(self) -> int:
        return len(self.ids)


class Awaiting(NamedTuple):
    """A decision without a reward."""

    context: Tensor
    arm: int
    member: int


def decision_event(first: int, contexts: Tensor, arms: Tensor, members: Tensor, owed: Sequence[int]) -> Event:
    """The event of decisions: the id of the first, what was decided for which contexts, and what is owed afterwards."""
    number = torch.tensor(first, device="cpu")
    return {"first": number, "contexts": contexts, "arms": arms, "members": members, "owed": _listing(owed)}


class Ledger:
    """What events add up to. Only `apply` changes it, so that a journal of events can restore it.

    Args:
        capacity: how many of the latest observations are kept to learn from; all by default.

    Examples:
        >>> ledger = Ledger()
        >>> two = torch.tensor([0, 1])
        >>> ledger.apply({"first": torch.tensor(0), "contexts": torch.ones(2, 3), "arms": two, "members": two})
        >>> ledger.apply({"ids": torch.tensor([1]), "rewards": torch.tensor([0.5])})
        >>> list(ledger.awaiting), len(ledger), ledger.rows(torch.tensor([0]))[2].item()
        ([0], 1, 0.5)
    """

    def __init__(self, capacity: int | None = None) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"a buffer has place for one observation at least, got {capacity}")
        self.capacity = capacity
        self.awaiting: dict[int, Awaiting] = {}
        self.decided = 0  # decisions ever made, and the next id
        self.observed = 0  # rewards ever received
        self.owed: list[int] = []  # arms that could not have one of their first pulls, the longest waiting first
        self._contexts, self._rewards = torch.empty(0, device="cpu"), torch.empty(0, device="cpu")
        self._arms = _listing([])

    def __len__(self) -> int:
        return self.observed if self.capacity is None else min(self.observed, self.capacity)

    def apply(self, event: Event) -> None:
        """Apply decisions (`contexts`), rewards (`rewards`), or decisions that will have no rewards (`ids` alone)."""
        if "contexts" in event:
            self._decide(event)
        elif "rewards" in event:
            for number, reward in zip(event["ids"].tolist(), event["rewards"], strict=True):
                # after an interrupt between disk and memory a caller may report a reward twice: it counts once
                if number in self.awaiting:
                    self._observe(self.awaiting.pop(number), reward)
        else:
            for number in event["ids"].tolist():
                self.awaiting.pop(number, None)

    def rows(self, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Contexts, arms and rewards of some observations in the buffer."""
        return self._contexts[places], self._arms[places], self._rewards[places]

    def check_awaited(self, ids: Sequence[int]) -> None:
        """Raise unless every id is that of a decision that awaits its reward, and occurs once."""
        if len(set(ids)) != len(ids):
            raise ValueError(f"every id may be given once, but {Counter(ids).most_common(1)[0][0]} is there more often")
        for number in ids:
            if number not in self.awaiting:
                why = "has its reward or was dropped" if 0 <= number < self.decided else "was never made"
                raise ValueError(f"no decision {number} awaits a reward: it {why}")

    def state(self) -> dict[str, Tensor]:
        """Everything, as tensors."""
        ids = list(self.awaiting)
        waiting = [self.awaiting[number] for number in ids]
        contexts = torch.stack([one.context for one in waiting]) if waiting else self._contexts[:0]
        kept = slice(0, len(self))
        return {
            "counts": _listing([self.decided, self.observed]),
            "owed": _listing(self.owed),
            "awaiting.ids": _listing(ids),
            "awaiting.contexts": contexts,
            "awaiting.arms": _listing([one.arm for one in waiting]),
            "awaiting.members": _listing([one.member for one in waiting]),
            "contexts": self._contexts[kept],
            "arms": self._arms[kept],
            "rewards": self._rewards[kept],
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore everything from tensors."""
        self.decided, self.observed = state["counts"].tolist()
        self.owed = _numbers(state["owed"]) if "owed" in state else []  # older files have none
        parts = (state[f"awaiting.{name}"] for name in ("ids", "contexts", "arms", "members"))
        self.awaiting = {
            number: Awaiting(context, arm, member)
            for number, context, arm, member in zip(*(_listed(part) for part in parts), strict=True)
        }
        self._contexts, self._arms, self._rewards = (state[name].clone() for name in ("contexts", "arms", "rewards"))

    def _decide(self, event: Event) -> None:
        first = int(event["first"])
        # after an interrupt between disk and memory ids are given again: nobody was told of the decisions that had them
        while self.awaiting and next(reversed(self.awaiting)) >= first:
            self.awaiting.popitem()
        entries = zip(event["contexts"], event["arms"].tolist(), event["members"].tolist(), strict=True)
        for number, entry in enumerate(entries, first):
            self.awaiting[number] = Awaiting(*entry)
        owed = _numbers(event["owed"]) if "owed" in event else self.owed  # older journals have none
        self.decided, self.owed = first + len(event["arms"]), owed

    def _observe(self, made: Awaiting, reward: Tensor) -> None:
        place = self.observed if self.capacity is None else self.observed % self.capacity
        if place >= len(self._arms):
            self._grow(made.context)
        self._contexts[place], self._arms[place], self._rewards[place] = made.context, made.arm, reward
        self.observed += 1

    def _grow(self, context: Tensor) -> None:
        have = len(self._arms)
        more = max(ROOM, have)
        if have == 0:
            self._contexts = context.new_empty(0, *context.shape)
        self._contexts = torch.cat([self._contexts, context.new_zeros(more, *context.shape)])
        self._arms = torch.cat([self._arms, self._arms.new_zeros(more)])
        self._rewards = torch.cat([self._rewards, self._rewards.new_zeros(more)])


def _listing(numbers: Sequence[int]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device="cpu")  # wherever torch puts tensors by default


def _numbers(listing: Tensor) -> list[int]:
    return listing.tolist() if len(listing) else []  # safetensors puts empty ones wherever torch does by default


def _listed(part: Tensor) -> Sequence[object]:
    """Numbers of a vector, rows of anything else."""
    return part.tolist() if part.ndim == 1 else list(part)
