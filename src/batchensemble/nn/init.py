"""How fast weights start."""

import re
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from batchensemble.nn.integers import check_count

Init = Literal["sign", "normal", "ones", "first"] | str  # also "sign(0.9)": P(+1) = 0.9, "normal(0.1)": N(1, 0.1)

_PATTERN = re.compile(r"(sign|normal|ones|first)(?:\((\d+\.?\d*|\.\d+)\))?")
_DEFAULTS = {"sign": 0.5, "normal": 0.5, "ones": 0.0, "first": 0.5}


def parse_init(init: Init) -> tuple[str, float]:
    """Split `init` into its rule and its number.

    Examples:
        >>> parse_init("sign"), parse_init("normal(0.1)")
        (('sign', 0.5), ('normal', 0.1))
    """
    match = _PATTERN.fullmatch(init) if isinstance(init, str) else None
    if match is None or (match[2] and match[1] == "ones"):
        raise ValueError(
            f"init must be 'sign', 'normal', 'ones' or 'first', with a number if you like ('sign(0.9)'), got {init!r}"
        )
    number = float(match[2]) if match[2] else _DEFAULTS[match[1]]
    if match[1] == "sign" and number > 1:
        raise ValueError(f"init={init!r}: the chance of +1 must lie in [0, 1]")
    return match[1], number


def check_generator(generator: object) -> None:
    """Refuse a seed, or anything else, where a generator is expected.

    Examples:
        >>> check_generator(3)
        Traceback (most recent call last):
        TypeError: expected a torch.Generator, such as torch.Generator().manual_seed(0), got int
    """
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"expected a torch.Generator, such as torch.Generator().manual_seed(0), got {type(generator).__name__}"
        )


@dataclass(frozen=True)
class Fast:
    """The plan of a layer's fast weights: how many members, which rank, and how they start.

    Examples:
        >>> Fast(members=0)
        Traceback (most recent call last):
        ...
        ValueError: members must be a positive integer, got 0
    """

    members: int
    rank: int = 1
    init: Init = "sign"
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", check_count("members", self.members))  # frozen
        object.__setattr__(self, "rank", check_count("rank", self.rank))
        parse_init(self.init)
        check_generator(self.generator)

    def after_first(self) -> "Fast":
        """The plan of every layer after the first: ones if only the first layer is random, otherwise the same."""
        return replace(self, init="ones") if parse_init(self.init)[0] == "first" else self


@torch.no_grad()
def draw_fast_(fast: Tensor, init: Init, side: str, generator: torch.Generator | None = None) -> Tensor:
    """Give fast weights of one side of a layer the values that they start with, in place.

    The first component follows `init`; the others start at `s = 0` with random signs in `r`, so that a higher rank
    starts exactly as rank one does, and all components learn.

    Args:
        fast: `(members, features)`, with a rank above 1 `(members, rank, features)`.
        init: the rule; "first" draws r around one and leaves s at one.
        side: "r" or "s".
        generator: source of randomness.

    Examples:
        >>> draw_fast_(torch.empty(1, 2, 3), "ones", "s")
        tensor([[[1., 1., 1.],
                 [0., 0., 0.]]])
    """
    rule, number = parse_init(init)
    if rule == "first":
        rule = "normal" if side == "r" else "ones"
    if fast.ndim == 2:
        _draw_(fast, rule, number, generator)
        return fast
    _draw_(fast[:, 0], rule, number, generator)
    if side == "r":
        _draw_(fast[:, 1:], "sign", 0.5, generator)
    else:
        fast[:, 1:].zero_()
    return fast


def _draw_(fast: Tensor, rule: str, number: float, generator: torch.Generator | None) -> None:
    if rule == "ones":
        fast.fill_(1)
        return
    device = fast.device if generator is None else generator.device
    drawn = torch.empty_like(fast, device=device, dtype=torch.float32)  # in any precision the same numbers
    if rule == "sign":
        drawn.bernoulli_(number, generator=generator).mul_(2).sub_(1)
    else:
        drawn.normal_(1.0, number, generator=generator)
    fast.copy_(drawn)
