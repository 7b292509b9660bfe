"""Fog and snow."""

import numpy as np

from batchensemble.lab.data.corruptions.arrays import SIZE, Floats, Randoms, normals, uniforms, zoomed
from batchensemble.lab.data.corruptions.blur import streaked

GREY = np.array([0.299, 0.587, 0.114], np.float64)


def fog(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """Add a bright plasma fractal, and scale the sum back to the image's own range."""
    weight, decay = ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))[severity - 1]
    brightest: Floats = x.max((1, 2, 3), keepdims=True)
    mist = plasma(uniforms(randoms, SIZE, SIZE, low=-1, high=1), decay)[..., None]
    return (x + weight * mist) * brightest / (brightest + weight)


def plasma(noise: Floats, decay: float) -> Floats:
    """Build diamond-square fractals `(N, S, S)` on a torus, scaled to `[0, 1]`, from `noise` in `[-1, 1]`.

    Each point is the mean of its four neighbours plus noise, whose size is the *square* of a wibble that starts at 100
    and is divided by `decay` from scale to scale (the published set multiplies by the wibble twice).
    """
    field = np.zeros_like(noise)
    step, wibble = noise.shape[1], 100.0
    while step >= 2:
        half, size = step // 2, wibble**2
        corners = field[:, ::step, ::step]
        middle = (slice(None), slice(half, None, step), slice(half, None, step))
        across = (slice(None), slice(None, None, step), slice(half, None, step))
        down = (slice(None), slice(half, None, step), slice(None, None, step))
        rows = corners + np.roll(corners, -1, 1)
        field[middle] = (rows + np.roll(rows, -1, 2)) / 4 + size * noise[middle]
        beside = corners + np.roll(corners, -1, 2) + field[middle] + np.roll(field[middle], 1, 1)
        field[across] = beside / 4 + size * noise[across]
        above = corners + np.roll(corners, -1, 1) + field[middle] + np.roll(field[middle], 1, 2)
        field[down] = above / 4 + size * noise[down]
        step, wibble = half, wibble / decay
    field -= field.min((1, 2), keepdims=True)
    scaled: Floats = field / field.max((1, 2), keepdims=True)
    return scaled


def snow(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """Whiten the image and add flakes that fall both ways."""
    mean, std, zoom, threshold, radius, sigma, kept = (
        (0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
        (0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
    )[severity - 1]
    flakes = zoomed(mean + std * normals(randoms, SIZE, SIZE), zoom)
    flakes = np.where(flakes < threshold, 0, np.clip(flakes, 0, 1))
    degrees = uniforms(randoms, low=-135, high=-45)
    layer = np.round(streaked(np.floor(flakes * 255)[..., None], degrees, int(radius), sigma)) / 255
    whitened = kept * x + (1 - kept) * np.maximum(x, (x @ GREY)[..., None] * 1.5 + 0.5)
    return whitened + layer + layer[:, ::-1, ::-1]
