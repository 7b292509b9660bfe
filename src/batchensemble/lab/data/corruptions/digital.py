"""Contrast, brightness, saturation, JPEG compression, pixelation and elastic deformation."""

import io
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from batchensemble.lab.data.corruptions.arrays import SIZE, Floats, Randoms, sample, smooth, uniforms


def contrast(x: Floats, severity: int, _: Randoms) -> Floats:
    """Move every pixel towards the mean of its channel."""
    kept = (0.75, 0.5, 0.4, 0.3, 0.15)[severity - 1]
    mean: Floats = x.mean((1, 2), keepdims=True)
    return (x - mean) * kept + mean


def brightness(x: Floats, severity: int, _: Randoms) -> Floats:
    """Raise the value (the largest channel) at the same hue and saturation; black becomes grey."""
    more = (0.05, 0.1, 0.15, 0.2, 0.3)[severity - 1]
    value: Floats = x.max(-1, keepdims=True)
    raised = np.minimum(value + more, 1)
    return np.where(value > 0, x * raised / np.maximum(value, 1e-6), raised)


def saturate(x: Floats, severity: int, _: Randoms) -> Floats:
    """Change the saturation at the same hue and value.

    Grey has no hue; as in the published set it counts as red, so severities 4 and 5 tint it.
    """
    times, more = ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2))[severity - 1]
    value: Floats = x.max(-1, keepdims=True)
    gap = value - x  # value * saturation * (a shape determined by the hue)
    saturation: Floats = gap.max(-1, keepdims=True) / np.maximum(value, 1e-6)
    wanted = np.clip(saturation * times + more, 0, 1)
    red = value * np.array([0, 1, 1], np.float64)
    return value - np.where(saturation > 0, gap * (wanted / np.maximum(saturation, 1e-6)), red * wanted)


def jpeg_compression(x: Floats, severity: int, _: Randoms) -> Floats:
    """Write and read every image as JPEG."""
    quality = (80, 65, 58, 50, 40)[severity - 1]

    def compressed(image: Image.Image) -> Image.Image:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        return Image.open(file)

    return pictured(x, compressed)


def pixelate(x: Floats, severity: int, _: Randoms) -> Floats:
    """Shrink and enlarge every image, both with box filters."""
    side = int(SIZE * (0.95, 0.9, 0.85, 0.75, 0.65)[severity - 1])
    box = Image.Resampling.BOX
    return pictured(x, lambda image: image.resize((side, side), box).resize((SIZE, SIZE), box))


def pictured(x: Floats, change: Callable[[Image.Image], Image.Image]) -> Floats:
    """Apply `change` to every image as an 8-bit Pillow image."""
    bytes_in = np.round(x * 255).astype(np.uint8)
    changed = np.stack([np.asarray(change(Image.fromarray(image))) for image in bytes_in])
    return changed.astype(np.float64) / 255


def elastic_transform(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """Apply a random affine map, then move every pixel by a smooth random field."""
    strength, sigma, shift = (
        SIZE * np.array([(0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)])
    )[severity - 1]
    warped = affine(x, uniforms(randoms, 3, 2, low=-shift, high=shift))
    field = uniforms(randoms, 2, SIZE, SIZE, low=-1, high=1).reshape(-1, SIZE, SIZE)
    field = strength * smooth(field, sigma, mode="reflect", truncate=3).reshape(-1, 2, SIZE, SIZE)
    right, down = field[:, 0], field[:, 1]
    grid = np.arange(SIZE, dtype=np.float64)
    return sample(warped, grid[:, None] + down, grid + right, "reflect")


def affine(x: Floats, shifts: Floats) -> Floats:
    """Apply to each image the affine map that moves three corners of the middle square by `shifts (N, 3, 2)`."""
    centre, half = SIZE // 2, SIZE // 3
    corners = centre + half * np.array([(1, 1), (1, -1), (-1, -1)])  # (column, row)
    moved = np.concatenate([corners + shifts, np.ones((len(x), 3, 1))], axis=2)
    back = np.linalg.solve(moved, np.broadcast_to(corners, (len(x), 3, 2)).astype(np.float64))  # (N, 3, 2)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    grid: NDArray[np.float64] = np.stack([columns, rows, np.ones_like(rows)], axis=-1).astype(np.float64)
    source = np.einsum("hwk,nkc->cnhw", grid, back).astype(np.float64)
    return sample(x, source[1], source[0], "mirror")
