"""Frost: an image of ice laid over the original.

The published set uses five photographs that are not ours to ship. Five patterns of ice are drawn here instead, and a
set that was made with them says so.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from batchensemble.lab.data.corruptions.arrays import SIZE, Floats, Randoms

Texture = NDArray[np.uint8]
"""A texture `(H, W, 3)`, larger than the images."""
PATTERNS = 5
PATTERN_SIZE = 200


def frost(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """`a x + b f`, where `f` is a random piece of a random pattern of ice."""
    kept, ice = ((1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))[severity - 1]
    pieces = np.stack([piece(drawn_textures(), random) for random in randoms])
    return kept * x + ice * pieces.astype(np.float64) / 255


def piece(textures: Sequence[Texture], random: np.random.Generator) -> Texture:
    """Cut out a random `32 x 32` window."""
    texture = textures[int(random.integers(len(textures)))]
    top, left = (random.integers(side - SIZE) for side in texture.shape[:2])
    return texture[top : top + SIZE, left : left + SIZE]


@cache
def drawn_textures() -> tuple[Texture, ...]:
    """Draw the patterns of ice ferns, always the same."""
    return tuple(drawn(np.random.default_rng([0xF057, number])) for number in range(PATTERNS))


def drawn(random: np.random.Generator, scale: int = 4) -> Texture:
    """Draw ice ferns that grow from random places over a cold glaze, `(200, 200, 3)`."""
    canvas = Image.new("L", (PATTERN_SIZE * scale, PATTERN_SIZE * scale), 0)
    pen = ImageDraw.Draw(canvas)
    for _ in range(32):
        start = random.uniform(0, PATTERN_SIZE * scale, 2)
        grow(pen, random, start, random.uniform(0, 2 * np.pi), random.uniform(30, 90) * scale, order=3)
    ferns = canvas.resize((PATTERN_SIZE, PATTERN_SIZE), Image.Resampling.BOX)
    haze = ferns.filter(ImageFilter.GaussianBlur(9))
    sharp, soft = (np.asarray(layer, np.float64) / 255 for layer in (ferns, haze))
    ice = np.clip(0.2 + 0.7 * sharp + 0.6 * soft + random.normal(0, 0.03, sharp.shape), 0, 1)[..., None]
    cold, bright = np.array([38, 58, 88]), np.array([236, 244, 250])
    picture: Texture = (cold + (bright - cold) * ice).astype(np.uint8)
    return picture


def grow(
    pen: ImageDraw.ImageDraw,
    random: np.random.Generator,
    start: NDArray[np.float64],
    angle: float,
    length: float,
    order: int,
) -> None:
    """Draw a bent branch; two shorter ones grow from each of its joints, and so on, `order` deep."""
    joints, bend = (12, random.normal(0, 0.06)) if order > 1 else (1, 0.0)
    for joint in range(joints):
        angle += bend
        end = start + length / joints * np.array([np.cos(angle), np.sin(angle)])
        pen.line([*start, *end], fill=int(random.uniform(130, 255)), width=2 * order - 1)
        start = end
        if order > 1:
            rest = 0.45 * length * (1 - joint / joints)
            for side in (-1, 1):
                grow(pen, random, start, angle + side * random.normal(0.95, 0.08), rest, order - 1)
