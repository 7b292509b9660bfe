"""Shared by the corruptions: their types, seeded numbers for every image, sampling between pixels."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Images `(N, 32, 32, 3)` in `[0, 1]`."""
Randoms = Sequence[np.random.Generator]
"""One generator for every image, so that an image's corruption does not depend on its neighbours."""
Corruption = Callable[[Floats, int, Randoms], Floats]
"""Maps `(images, severity 1 to 5, generators)` to corrupted images, which the caller clips to `[0, 1]`."""

Places = NDArray[np.intp]
"""Rows or columns, in whole pixels."""

SIZE = 32


def normals(randoms: Randoms, *shape: int) -> Floats:
    """Draw standard normal numbers `(N, *shape)`."""
    return np.stack([random.standard_normal(shape, np.float64) for random in randoms])


def uniforms(randoms: Randoms, *shape: int, low: float = 0.0, high: float = 1.0) -> Floats:
    """Draw uniform numbers in `[low, high)`, `(N, *shape)`."""
    return low + (high - low) * np.stack([random.random(shape, np.float64) for random in randoms])


def smooth(images: NDArray[np.floating], sigma: float, mode: str = "nearest", truncate: float = 4.0) -> Floats:
    """Apply Gaussian blur over height and width of `(N, H, W)` or `(N, H, W, C)`."""
    from scipy.ndimage import gaussian_filter

    blurred: Floats = gaussian_filter(images, sigma, axes=(1, 2), mode=mode, truncate=truncate)
    return blurred


def pixels(images: Floats, rows: Places, columns: Places) -> Floats:
    """The pixels of each image `(N, H, W, C)` at its own integer positions, broadcast to `(N, H', W')`."""
    count, height, width, channels = images.shape
    image = np.arange(count)[:, None, None]
    # one flat index: several times faster than images[image, rows, columns]
    found: Floats = images.reshape(-1, channels).take((image * height + rows) * width + columns, axis=0)
    return found


def sample(images: Floats, rows: Floats, columns: Floats, border: Literal["mirror", "reflect"]) -> Floats:
    """Interpolate linearly between pixels: `images (N, H, W, C)` at positions `(N, H', W')`.

    Args:
        images: the images.
        rows: vertical positions, in pixels.
        columns: horizontal positions, in pixels.
        border: `"mirror"` repeats `c b | a b c`, `"reflect"` repeats `b a | a b c`.
    """
    top, left = np.floor(rows).astype(np.intp), np.floor(columns).astype(np.intp)
    down, right = (rows - top)[..., None], (columns - left)[..., None]

    def pixel(row: Places, column: Places) -> Floats:
        height, width = images.shape[1:3]
        return pixels(images, folded(row, height, border), folded(column, width, border))

    upper = pixel(top, left) * (1 - right) + pixel(top, left + 1) * right
    lower = pixel(top + 1, left) * (1 - right) + pixel(top + 1, left + 1) * right
    return upper * (1 - down) + lower * down


def folded(places: Places, size: int, border: Literal["mirror", "reflect"]) -> Places:
    """Bring positions outside `[0, size)` back by reflection at the border."""
    edge = 1 if border == "reflect" else 0
    period = 2 * (size - 1 + edge)
    wrapped = places % period
    return np.minimum(wrapped, period - edge - wrapped)


def zoomed(images: Floats, factor: float) -> Floats:
    """Enlarge the middle of `(N, S, S)` or `(N, S, S, C)` images by `factor >= 1` to their own size."""
    spread = zoom_matrix(images.shape[1], factor)
    enlarged: Floats = np.einsum("ih,jw,nhw...->nij...", spread, spread, images, optimize=True)
    return enlarged


def zoom_matrix(size: int, factor: float) -> Floats:
    """The `(size, size)` matrix that enlarges the middle `ceil(size / factor)` pixels, corner to corner."""
    kept = int(np.ceil(size / factor))
    enlarged = round(kept * factor)
    trimmed = (enlarged - size) // 2
    places = np.arange(trimmed, trimmed + size) * (kept - 1) / (enlarged - 1)
    distance = np.abs(places[:, None] - np.arange(kept))
    matrix = np.zeros((size, size), np.float64)
    start = (size - kept) // 2
    matrix[:, start : start + kept] = np.maximum(0, 1 - distance)
    return matrix
