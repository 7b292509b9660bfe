"""Gaussian, shot, impulse and speckle noise."""

import numpy as np

from batchensemble.lab.data.corruptions.arrays import Floats, Randoms, normals, uniforms


def gaussian_noise(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """`x + e`, with normal `e`."""
    std = (0.04, 0.06, 0.08, 0.09, 0.10)[severity - 1]
    return x + std * normals(randoms, *x.shape[1:])


def shot_noise(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """Count photons: Poisson numbers with mean `x` times the light."""
    light = (500, 250, 100, 75, 50)[severity - 1]
    counts = [random.poisson(image * light) for image, random in zip(x, randoms, strict=True)]
    return np.stack(counts).astype(np.float64) / light


def impulse_noise(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """Salt and pepper: a share of the values, in each channel separately, becomes one or zero."""
    amount = (0.01, 0.02, 0.03, 0.05, 0.07)[severity - 1]
    struck, salt = np.moveaxis(uniforms(randoms, 2, *x.shape[1:]), 1, 0)
    return np.where(struck < amount, (salt < 0.5).astype(np.float64), x)


def speckle_noise(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """`x + x e`, with normal `e`."""
    std = (0.06, 0.10, 0.12, 0.16, 0.20)[severity - 1]
    return x + x * std * normals(randoms, *x.shape[1:])
