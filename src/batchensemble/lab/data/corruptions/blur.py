"""Gaussian, glass, defocus, motion and zoom blur."""

import numpy as np

from batchensemble.lab.data.corruptions.arrays import SIZE, Floats, Randoms, pixels, smooth, uniforms, zoomed


def gaussian_blur(x: Floats, severity: int, _: Randoms) -> Floats:
    """Convolution with a Gaussian."""
    return smooth(x, (0.4, 0.6, 0.7, 0.8, 1.0)[severity - 1])


def glass_blur(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """Blur, replace pixels by nearby ones, and blur again.

    The published set walks each image from the last pixel back to the third in both directions, and each pixel takes
    the value of the one 0 or 1 above and 0 or 1 to the left. (It intends to swap the two, but the swap goes through
    views of one array and only copies.) The copied pixel comes earlier in the image and has not been changed yet, so
    all copies of one walk are one gather.
    """
    sigma, walks = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))[severity - 1]
    steps = np.stack([random.integers(-1, 1, (walks, 2, SIZE, SIZE)) for random in randoms])
    steps[..., :2, :] = steps[..., :2] = 0
    place = np.arange(SIZE)
    x = np.floor(smooth(x, sigma) * 255) / 255
    for walk in range(walks):
        x = pixels(x, place[:, None] + steps[:, walk, 0], place + steps[:, walk, 1])
    return smooth(x, sigma)


def defocus_blur(x: Floats, severity: int, _: Randoms) -> Floats:
    """Convolution with a disc, itself softened by a 3x3 Gaussian."""
    from scipy.ndimage import correlate

    radius, alias = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))[severity - 1]
    kernel = disc(radius, alias)[None, :, :, None]
    blurred: Floats = correlate(x, kernel, mode="mirror")
    return blurred


def disc(radius: float, alias: float) -> Floats:
    """A normalised, softened disc `(7, 7)`."""
    from scipy.ndimage import correlate1d

    line = np.arange(-3, 4)
    kernel = (line**2 + line[:, None] ** 2 <= radius**2).astype(np.float64)
    softener = np.exp(-np.array([1.0, 0.0, 1.0]) / (2 * alias**2))
    for axis in (0, 1):
        kernel = correlate1d(kernel, softener / softener.sum(), axis, mode="constant")
    softened: Floats = kernel / kernel.sum()
    return softened


def motion_blur(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """The trace of a moving camera, at an angle of -45 to 45 degrees."""
    radius, sigma = ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5))[severity - 1]
    degrees = uniforms(randoms, low=-45, high=45)
    return np.round(streaked(x, degrees, radius, sigma) * 255) / 255


def streaked(x: Floats, degrees: Floats, radius: int, sigma: float) -> Floats:
    """Average each image `(N, H, W, C)` along its own direction, as ImageMagick's motion blur does.

    Tap `i` of `2 radius + 1` lies `i` pixels away in the direction of the angle, rounded to whole pixels, with weight
    `exp(-i^2 / 2 sigma^2)`; beyond the border the last pixel is repeated.
    """
    taps = np.arange(2 * radius + 1)
    weights = np.exp(-(taps**2) / (2 * sigma**2), dtype=np.float64)
    weights /= weights.sum()
    angle = np.deg2rad(degrees)[:, None]
    down, right = (np.ceil(taps * f(angle) - 0.5).astype(np.intp) for f in (np.sin, np.cos))
    height, width = np.arange(x.shape[1]), np.arange(x.shape[2])
    total = np.zeros_like(x)
    for tap, weight in enumerate(weights):
        rows = np.clip(height + down[:, tap, None], 0, x.shape[1] - 1)[:, :, None]
        columns = np.clip(width + right[:, tap, None], 0, x.shape[2] - 1)[:, None, :]
        total += weight * pixels(x, rows, columns)
    return total


def zoom_blur(x: Floats, severity: int, _: Randoms) -> Floats:
    """The mean of the image and its enlargements by 1.00, 1.01 and so on; arange's rounding decides the last."""
    factors = np.arange(1, (1.06, 1.11, 1.16, 1.21, 1.26)[severity - 1], 0.01)
    total = x + sum(zoomed(x, factor) for factor in factors)
    mean: Floats = total / (len(factors) + 1)
    return mean
