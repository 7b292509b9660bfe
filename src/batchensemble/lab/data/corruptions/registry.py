"""The nineteen corruptions by name, and the function that applies them."""

import zlib

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.data.corruptions import blur, digital, noise, weather
from batchensemble.lab.data.corruptions.arrays import SIZE, Corruption
from batchensemble.lab.data.corruptions.frost import frost
from batchensemble.lab.data.corruptions.spatter import spatter

CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "defocus_blur": blur.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": frost,
    "fog": weather.fog,
    "brightness": digital.brightness,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "spatter": spatter,
    "saturate": digital.saturate,
}
"""Many reports leave out the last four: a mean over 15 corruptions is one over the others."""
SEVERITIES = (1, 2, 3, 4, 5)


def corrupt(images: NDArray[np.uint8], name: str, severity: int, *, seed: int = 0, first: int = 0) -> NDArray[np.uint8]:
    """Corrupt images `(N, 32, 32, 3)` with CIFAR-10-C's constants.

    Every image has its own random numbers, drawn from `(seed, name, severity, index)`: the result does not depend on
    how a set is cut into pieces, or on how many processes share the work.

    Args:
        images: pixels 0 to 255, in the layout of the published set.
        name: one of `CORRUPTIONS`.
        severity: 1 to 5.
        seed: determines all random numbers.
        first: index of the first image in its set, if `images` is a piece of one.

    Returns:
        `(N, 32, 32, 3)` uint8.

    Examples:
        >>> grey = np.full((2, 32, 32, 3), 128, np.uint8)
        >>> noisy = corrupt(grey, "gaussian_noise", severity=5)
        >>> noisy.shape, round(float(noisy.std()), 0)
        ((2, 32, 32, 3), 25.0)
    """
    change = checked(images, name, severity)
    number = zlib.crc32(name.encode())
    randoms = [np.random.default_rng([seed, number, severity, first + i]) for i in range(len(images))]
    corrupted = change(images.astype(np.float64) / 255, severity, randoms)
    return (np.clip(corrupted, 0, 1) * 255).astype(np.uint8)


def checked(images: NDArray[np.uint8], name: str, severity: int) -> Corruption:
    """Check the arguments and return the corruption of this name."""
    check_name(name)
    check_severity(severity)
    if images.dtype != np.uint8 or images.shape[1:] != (SIZE, SIZE, 3) or not len(images):
        raise ValueError(f"images must be uint8 (N, 32, 32, 3), got {images.dtype} {images.shape}")
    return CORRUPTIONS[name]


def check_name(name: str) -> None:
    """Raise unless a corruption has this name."""
    if name not in CORRUPTIONS:
        raise ValueError(f"unknown corruption {name!r}; known: {', '.join(CORRUPTIONS)}")


def check_severity(severity: int) -> None:
    """Raise unless this is a severity."""
    if severity not in SEVERITIES:
        raise ValueError(f"severity must be 1 to 5, got {severity}")
