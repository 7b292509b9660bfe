import numpy as np
import pytest
from scipy import ndimage

from batchensemble.lab.data.corruptions import blur, corrupt

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(256, size=(6, 32, 32, 3), dtype=np.uint8)


def generators(seed=1, count=6):
    return [np.random.default_rng([seed, i]) for i in range(count)]


def test_every_blur_keeps_a_flat_image():
    flat = np.full((2, 32, 32, 3), 200, np.uint8)
    for name in ("gaussian_blur", "glass_blur", "defocus_blur", "motion_blur", "zoom_blur"):
        for severity in range(1, 6):
            assert np.abs(corrupt(flat, name, severity).astype(int) - 200).max() <= 1


def as_the_loop_goes(image, offsets):
    """The published loop on one image, its swap through views included."""
    image = image.copy()
    for walk in offsets:
        for h in range(31, 1, -1):
            for w in range(31, 1, -1):
                dy, dx = walk[:, h, w]
                image[h, w], image[h + dy, w + dx] = image[h + dy, w + dx], image[h, w]
    return image


@pytest.mark.parametrize("severity", [2, 5])
def test_glass_blur_is_the_published_loop(severity):
    sigma, walks = {2: (0.25, 1), 5: (0.4, 2)}[severity]
    for image, generator, twin in zip(IMAGES, generators(), generators(), strict=True):
        start = np.floor(ndimage.gaussian_filter(image / 255, (sigma, sigma, 0), mode="nearest") * 255)
        shuffled = as_the_loop_goes(start, generator.integers(-1, 1, (walks, 2, 32, 32)))
        expected = ndimage.gaussian_filter(shuffled / 255, (sigma, sigma, 0), mode="nearest")
        found = blur.glass_blur(image[None] / 255, severity, [twin])[0]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(("radius", "alias", "ones"), [(0.3, 1e-3, 1), (0.5, 1e-3, 1), (1.0, 1e-3, 5), (1.5, 1e-3, 9)])
def test_discs_have_the_right_pixels(radius, alias, ones):
    kernel = blur.disc(radius, alias)
    assert np.count_nonzero(kernel > 1e-6) == ones
    assert kernel.sum() == pytest.approx(1)
    assert kernel.max() == pytest.approx(1 / ones)


def test_defocus_at_small_radius_is_the_three_by_three_gaussian():
    weights = np.exp(-np.array([1, 0, 1]) / (2 * 0.4**2))
    kernel = np.outer(weights, weights) / weights.sum() ** 2
    expected = np.stack([ndimage.correlate(IMAGES[0, ..., c] / 255, kernel, mode="mirror") for c in range(3)], -1)
    np.testing.assert_allclose(blur.defocus_blur(IMAGES[:1] / 255, 1, [])[0], expected, atol=1e-12)


def streak(degrees, radius=4, sigma=2.0):
    dot = np.zeros((1, 32, 32, 1))
    dot[0, 16, 16] = 1
    return blur.streaked(dot, np.array([degrees], float), radius, sigma)[0, ..., 0]


def test_a_dot_leaves_a_gaussian_streak_along_the_angle():
    weights = np.exp(-(np.arange(9) ** 2) / 8)
    along_a_row = np.zeros((32, 32))
    along_a_row[16, 16 - np.arange(9)] = weights / weights.sum()
    np.testing.assert_allclose(streak(0), along_a_row, atol=1e-12)
    np.testing.assert_allclose(streak(90), along_a_row.T, atol=1e-12)
    np.testing.assert_allclose(streak(-90), along_a_row.T[::-1][np.r_[31, :31]], atol=1e-12)
    rows, columns = np.nonzero(streak(45))
    assert (rows == columns).all()


def test_each_image_has_an_angle_of_its_own():
    together = blur.motion_blur(IMAGES / 255, 3, generators())
    alone = [blur.motion_blur(IMAGES[i : i + 1] / 255, 3, [g])[0] for i, g in enumerate(generators())]
    np.testing.assert_array_equal(together, np.stack(alone))
    same = np.repeat(IMAGES[:1], 6, 0) / 255
    assert len({image.tobytes() for image in blur.motion_blur(same, 3, generators())}) == 6


@pytest.mark.parametrize("severity", range(1, 6))
def test_zoom_blur_is_the_mean_of_scipys_zooms(severity):
    image, total = IMAGES[0] / 255, IMAGES[0] / 255
    factors = np.arange(1, [1.06, 1.11, 1.16, 1.21, 1.26][severity - 1], 0.01)
    for factor in factors:
        kept = int(np.ceil(32 / factor))
        top = (32 - kept) // 2
        enlarged = ndimage.zoom(image[top : top + kept, top : top + kept], (factor, factor, 1), order=1)
        trim = (len(enlarged) - 32) // 2
        total = total + enlarged[trim : trim + 32, trim : trim + 32]
    found = blur.zoom_blur(IMAGES[:1] / 255, severity, [])[0]
    np.testing.assert_allclose(found, total / (len(factors) + 1), atol=1e-9)
