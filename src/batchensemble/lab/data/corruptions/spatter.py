"""Spatter: drops of water or mud on the lens, shaded by their distance to an edge.

Water follows the published set step by step (Canny edges, distance, equalised histogram, an embossing kernel) with the
same constants; distances are exact instead of approximate.
"""

import numpy as np
from numpy.typing import NDArray

from batchensemble.lab.data.corruptions.arrays import SIZE, Floats, Randoms, normals, smooth

WATER = np.array([175, 238, 238], np.float64) / 255
MUD = np.array([63, 42, 20], np.float64) / 255
SOBEL = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float64)
EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float64)
FAR = 20  # distances are capped at this


def spatter(x: Floats, severity: int, randoms: Randoms) -> Floats:
    """Water at severities 1 to 3, mud at 4 and 5."""
    mean, std, sigma, threshold, weight, mud = (
        (0.62, 0.1, 0.7, 0.7, 0.5, False),
        (0.65, 0.1, 0.8, 0.7, 0.5, False),
        (0.65, 0.3, 1.0, 0.69, 0.5, False),
        (0.65, 0.1, 0.7, 0.69, 0.6, True),
        (0.65, 0.1, 0.5, 0.68, 0.6, True),
    )[severity - 1]
    liquid = smooth(mean + std * normals(randoms, SIZE, SIZE), sigma)
    if mud:
        return muddied(x, liquid > threshold, weight)
    return watered(x, np.where(liquid < threshold, 0, liquid), weight)


def muddied(x: Floats, wet: NDArray[np.bool_], sigma: float) -> Floats:
    """Cover what lies well inside the wet areas with mud."""
    cover = smooth(wet.astype(np.float64), sigma)[..., None]
    cover = np.where(cover < 0.8, 0, cover)
    return x * (1 - cover) + MUD * cover


def watered(x: Floats, liquid: Floats, weight: float) -> Floats:
    """Add pale water, brightest where it is deep and far from its edge."""
    layer = np.floor(np.clip(liquid, 0, 1) * 255)
    depth = layer * relief(edges(layer))
    deepest: Floats = depth.max((1, 2), keepdims=True)
    return x + WATER * (weight * depth / np.maximum(deepest, 1e-6))[..., None]


def relief(rims: NDArray[np.bool_]) -> Floats:
    """The distances to the rims `(N, H, W)`, equalised and lit from one corner, 0 to 255."""
    from scipy.ndimage import correlate, uniform_filter

    near = uniform_filter(distances(rims), 3, mode="mirror", axes=(1, 2))
    lit = correlate(equalised(near.astype(np.uint8)), EMBOSS[None], mode="mirror")
    softened: Floats = uniform_filter(np.clip(lit, 0, 255), 3, mode="mirror", axes=(1, 2))
    return np.round(softened)


def distances(rims: NDArray[np.bool_]) -> Floats:
    """The distance of every pixel to the nearest rim of its own image, at most `FAR`."""
    from scipy.ndimage import distance_transform_edt

    if not rims.any():
        return np.full(rims.shape, FAR, np.float64)
    apart: Floats = distance_transform_edt(~rims, sampling=(10 * SIZE, 1, 1))  # other images are beyond FAR
    return np.minimum(apart, FAR)


def equalised(levels: NDArray[np.uint8]) -> Floats:
    """Equalise every image's histogram: the lowest level becomes 0, the highest 255; a single level stays."""
    counts = np.stack([np.bincount(image.ravel(), minlength=256) for image in levels])
    below = counts.cumsum(1)
    lowest, total = np.take_along_axis(counts, (counts > 0).argmax(1)[:, None], 1), levels[0].size
    table = np.round(np.maximum(below - lowest, 0) * (255 / np.maximum(total - lowest, 1)))
    table = np.where(lowest == total, np.arange(256), table)
    return np.take_along_axis(table, levels.reshape(len(levels), -1).astype(np.intp), 1).reshape(levels.shape)


def edges(layer: Floats, low: float = 50, high: float = 150) -> NDArray[np.bool_]:
    """Canny's edges of `(N, H, W)` images of 0 to 255."""
    from scipy.ndimage import correlate, label

    across, down = (correlate(layer, kernel[None], mode="nearest") for kernel in (SOBEL, SOBEL.T))
    strength = np.abs(across) + np.abs(down)
    ridge = (strength > low) & is_ridge(strength, across, down)
    same_image = np.zeros((3, 3, 3), bool)
    same_image[1] = True
    pieces, _ = label(ridge, same_image)
    strong = np.unique(pieces[ridge & (strength > high)])
    return np.isin(pieces, strong[strong > 0])


def is_ridge(strength: Floats, across: Floats, down: Floats) -> NDArray[np.bool_]:
    """Whether a pixel is the strongest along its gradient, rounded to one of four directions."""
    padded = np.pad(strength, ((0, 0), (1, 1), (1, 1)))

    def beside(rows: int, columns: int) -> Floats:
        return padded[:, 1 + rows : 1 + rows + SIZE, 1 + columns : 1 + columns + SIZE]

    def ridge(rows: int, columns: int) -> NDArray[np.bool_]:
        return (strength > beside(-rows, -columns)) & (strength >= beside(rows, columns))

    flat = np.abs(down) < np.tan(np.pi / 8) * np.abs(across)
    steep = np.abs(down) > np.tan(3 * np.pi / 8) * np.abs(across)
    falling = across * down >= 0
    return np.select([flat, steep, falling], [ridge(0, 1), ridge(1, 0), ridge(1, 1)], ridge(1, -1))
