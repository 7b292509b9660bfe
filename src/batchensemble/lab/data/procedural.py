"""A procedural look-alike of CIFAR: coloured figures on cluttered backgrounds, drawn from a seed in a moment.

With 10 classes, a class is a figure in its own hue; with 100, every figure comes in every hue. Neighbouring hues
overlap, and position, size, angle, texture, background, light and noise vary. A small residual network learns it
partly within seconds, which is what quick runs and tests need.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from batchensemble.lab.data.image_set import ImageSet
from batchensemble.lab.data.shapes import KNOWN, UNSEEN

SIZE = 32
HUES = ("red", "orange", "yellow", "lime", "green", "teal", "blue", "indigo", "violet", "pink")


def procedural(
    classes: int = 10, train: int = 2000, test: int = 1000, *, seed: int = 0, unseen: bool = False
) -> tuple[ImageSet, ImageSet]:
    """Draw training and test images `(N, 3, 32, 32)` of 10 or 100 classes.

    Args:
        classes: 10 (figures) or 100 (figures in ten hues).
        train: number of training images; labels take turns.
        test: number of test images, which do not depend on the number of training images.
        seed: determines every pixel.
        unseen: draw ten other figures on the same kind of background: classes that no network has seen.

    Examples:
        >>> train, test = procedural(train=20, test=10)
        >>> train.images.shape, test.labels.tolist(), train.class_names[:3]
        (torch.Size([20, 3, 32, 32]), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ('disc', 'square', 'triangle'))
    """
    if classes not in (10, 100):
        raise ValueError(f"classes must be 10 or 100, got {classes}")
    figures = tuple(UNSEEN if unseen else KNOWN)
    names = figures if classes == 10 else tuple(f"{hue} {figure}" for hue in HUES for figure in figures)
    kind = f"procedural{classes}{'-unseen' if unseen else ''}"
    parts = []
    for part, count in (("train", train), ("test", test)):
        stream = 4 * seed + 2 * unseen + (part == "test")
        labels = torch.arange(count) % classes
        images = draw(labels, classes, unseen, torch.Generator().manual_seed(stream))
        parts.append(ImageSet(images, labels, classes, f"{kind}-{part}", names))
    return parts[0], parts[1]


def draw(labels: Tensor, classes: int, unseen: bool, generator: torch.Generator) -> Tensor:
    """Draw images `(N, 3, 32, 32)` uint8 of `labels`."""
    count = len(labels)
    inside = figures(labels % 10, unseen, generator)
    colour = colours(labels if classes == 10 else labels // 10, unseen, generator)
    picture = torch.lerp(ground(count, generator), colour * texture(count, generator), inside)
    light = (0.7 + 0.5 * uniform(count, generator))[:, None, None, None]
    noise = torch.randn(count, 3, SIZE, SIZE, generator=generator)
    return (picture * light + 0.03 * noise).clamp(0, 1).mul(255).to(torch.uint8)


def colours(places: Tensor, unseen: bool, generator: torch.Generator) -> Tensor:
    """Draw colours `(N, 3, 1, 1)`; neighbouring hues overlap, and unseen ones lie between the known."""
    jitter = 1.4 * (uniform(len(places), generator) - 0.5)
    saturation, value = uniform(len(places), generator, 2).mul(0.6).add(0.4).unbind(1)
    return hsv((places + 0.5 * unseen + jitter) / 10 % 1, saturation, value)[:, :, None, None]


def figures(kinds: Tensor, unseen: bool, generator: torch.Generator) -> Tensor:
    """How much of each pixel the figure covers, `(N, 1, 32, 32)`, at random positions, sizes and angles."""
    u, v = placed(len(kinds), generator)
    cover = torch.empty_like(u)
    for kind, figure in enumerate((UNSEEN if unseen else KNOWN).values()):
        rows = kinds == kind
        if rows.any():
            cover[rows] = torch.sigmoid(12 * figure(u[rows], v[rows]))
    return cover[:, None]


def placed(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The coordinates of every pixel in the frame of its figure, `(N, 32, 32)` each."""
    middle = 0.35 * (2 * uniform(count, generator, 2) - 1)
    radius = (0.4 + 0.35 * uniform(count, generator))[:, None, None]
    angle = (0.7 * (2 * uniform(count, generator) - 1))[:, None, None]
    line = torch.linspace(-1, 1, SIZE)
    x, y = line - middle[:, 0, None, None], line[:, None] - middle[:, 1, None, None]
    return (angle.cos() * x + angle.sin() * y) / radius, (angle.cos() * y - angle.sin() * x) / radius


def ground(count: int, generator: torch.Generator) -> Tensor:
    """Draw backgrounds of smooth, rather grey patches, `(N, 3, 32, 32)`."""
    patches = 0.5 * uniform(count, generator, 1, 4, 4) + 0.3 * uniform(count, generator, 3, 4, 4)
    smooth = F.interpolate(patches, size=(SIZE, SIZE), mode="bicubic", align_corners=True)
    return (smooth + 0.4 * uniform(count, generator, 1, 1, 1) - 0.1).clamp(0, 1)


def texture(count: int, generator: torch.Generator) -> Tensor:
    """Draw stripes of random direction, width and strength, `(N, 1, 32, 32)`, around one."""
    angle, pace, strength = uniform(count, generator, 3)[:, :, None, None].unbind(1)
    line = torch.arange(SIZE)
    along = torch.cos(math.pi * angle) * line + torch.sin(math.pi * angle) * line[:, None]
    return (1 + 0.4 * strength * torch.sin((0.4 + 1.2 * pace) * along))[:, None]


def hsv(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """Convert hues, saturations and values `(N,)` to colours `(N, 3)`, all in `[0, 1]`."""
    sector = (hue[:, None] * 6 + torch.tensor([5.0, 3.0, 1.0])) % 6
    dip = torch.minimum(sector, 4 - sector).clamp(0, 1)
    return value[:, None] * (1 - saturation[:, None] * dip)


def uniform(count: int, generator: torch.Generator, *shape: int) -> Tensor:
    """Draw uniform numbers in `[0, 1)`, `(count, *shape)`."""
    return torch.rand(count, *shape, generator=generator)
