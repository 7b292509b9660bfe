"""Twenty plane figures, each a function that is positive inside: ten to learn, ten to be surprised by."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

Figure = Callable[[Tensor, Tensor], Tensor]
"""Maps coordinates `u` (right) and `v` (down), about one at the edge, to a number that is positive inside."""


def both(*parts: Tensor) -> Tensor:
    """Inside all parts."""
    return torch.stack(parts).amin(0)


def either(*parts: Tensor) -> Tensor:
    """Inside any part."""
    return torch.stack(parts).amax(0)


def box(u: Tensor, v: Tensor, half_width: float, half_height: float) -> Tensor:
    """An upright rectangle around the origin."""
    return both(half_width - u.abs(), half_height - v.abs())


def polygon(u: Tensor, v: Tensor, corners: int, apothem: float) -> Tensor:
    """A regular polygon around the origin, one side down."""
    angles = [2 * math.pi * k / corners + math.pi / 2 for k in range(corners)]
    return both(*(apothem - u * math.cos(a) - v * math.sin(a) for a in angles))


def petals(u: Tensor, v: Tensor, count: int, depth: float) -> Tensor:
    """A rosette whose edge swings by `depth`."""
    return 0.62 + depth * torch.cos(count * torch.atan2(v, u)) - torch.hypot(u, v)


KNOWN: dict[str, Figure] = {
    "disc": lambda u, v: 0.85 - torch.hypot(u, v),
    "square": lambda u, v: box(u, v, 0.75, 0.75),
    "triangle": lambda u, v: polygon(u, v, 3, 0.5),
    "cross": lambda u, v: either(box(u, v, 0.27, 0.95), box(u, v, 0.95, 0.27)),
    "ring": lambda u, v: 0.22 - (torch.hypot(u, v) - 0.7).abs(),
    "star": lambda u, v: petals(u, v, 5, 0.33),
    "bar": lambda u, v: box(u, v, 1.0, 0.3),
    "crescent": lambda u, v: both(0.95 - torch.hypot(u, v), torch.hypot(u - 0.45, v) - 0.75),
    "clover": lambda u, v: petals(u, v, 3, 0.35),
    "pair": lambda u, v: 0.45 - torch.hypot(u.abs() - 0.55, v),
}
UNSEEN: dict[str, Figure] = {
    "frame": lambda u, v: 0.2 - (torch.maximum(u.abs(), v.abs()) - 0.65).abs(),
    "half disc": lambda u, v: both(0.95 - torch.hypot(u, v), v + 0.2),
    "corner": lambda u, v: either(box(u + 0.55, v, 0.25, 0.85), box(u, v - 0.6, 0.8, 0.25)),
    "tee": lambda u, v: either(box(u, v + 0.65, 0.9, 0.24), box(u, v, 0.24, 0.9)),
    "chevron": lambda u, v: both(0.28 - (v - 0.9 * u.abs() + 0.4).abs(), 0.95 - u.abs()),
    "wave": lambda u, v: both(0.24 - (v - 0.45 * torch.sin(4 * u)).abs(), 1.0 - u.abs()),
    "grille": lambda u, v: both(box(u, v, 0.9, 0.9), 0.4 * torch.cos(3.5 * math.pi * u)),
    "checks": lambda u, v: both(box(u, v, 0.9, 0.9), torch.sin(3.5 * u) * torch.sin(3.5 * v)),
    "spiral": lambda u, v: both(0.95 - torch.hypot(u, v), 0.4 * torch.cos(torch.atan2(v, u) - 7 * torch.hypot(u, v))),
    "hourglass": lambda u, v: both(u.abs() * 0.9 - v.abs(), 0.85 - u.abs()),
}
