"""What belongs to one task alone, apart from its member: a head, and perhaps lateral connections."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

HeadRule: TypeAlias = int | Callable[[int], nn.Module]
"""How many features the backbone returns (a head is then one linear layer), or a function from classes to a head."""


class Lateral(nn.Module):
    """What earlier tasks' features add to a task's own: `up(relu(down([f_1, ..., f_k])))`.

    At first it adds nothing: `up` starts at zero. The connection is made once, where the network returns its features,
    and not layer by layer, so that it fits every network.

    Args:
        sources: names of the tasks it looks at.
        features: width of one task's features.
        width: width of the narrow layer between `down` and `up`.

    Examples:
        >>> lateral = Lateral(("birds", "cars"), features=8)
        >>> lateral([torch.ones(3, 8), torch.ones(3, 8)]).detach().abs().sum()
        tensor(0.)
    """

    def __init__(self, sources: Sequence[str], features: int, width: int = 16) -> None:
        super().__init__()
        self.sources = tuple(sources)
        self.down = nn.Linear(len(self.sources) * features, width)
        self.up = nn.Linear(width, features)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, features: list[Tensor]) -> Tensor:
        """Features `(N, features)` of every source to what is added, `(N, features)`."""
        added: Tensor = self.up(torch.relu(self.down(torch.cat(features, 1))))
        return added


class TaskHead(nn.Module):
    """A task's head: features `(N, ...)` to logits `(N, classes)`.

    Args:
        rule: see `HeadRule`.
        classes: how many logits.
        sources: names of earlier tasks for lateral connections; these need a `rule` that is a number.
    """

    def __init__(self, rule: HeadRule, classes: int, sources: Sequence[str]) -> None:
        super().__init__()
        self.classes = classes
        self.features = rule if isinstance(rule, int) else None
        self.layers = nn.Linear(rule, classes) if isinstance(rule, int) else rule(classes)
        self.lateral: Lateral | None = None
        if sources:
            if self.features is None:
                raise ValueError("lateral connections need to know the number of features: give it as head=")
            self.lateral = Lateral(sources, self.features)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the tasks that it looks at."""
        return self.lateral.sources if self.lateral else ()

    def forward(self, features: Tensor, others: list[Tensor]) -> Tensor:
        """Logits for a task's own features and those of the tasks that it looks at."""
        if self.features is not None and features.shape[1:] != (self.features,):
            expected = f"(N, {self.features})"
            raise ValueError(f"head={self.features} expects features {expected}, got {tuple(features.shape)}")
        if self.lateral is not None:
            features = features + self.lateral(others)
        logits: Tensor = self.layers(features)
        if logits.shape[1:] != (self.classes,):
            raise ValueError(f"the head of {self.classes} classes gave logits of shape {tuple(logits.shape)}")
        return logits
