import io

import numpy as np
import pytest
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from PIL import Image
from scipy import ndimage

from batchensemble.lab.data.corruptions import corrupt, digital

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(256, size=(6, 32, 32, 3), dtype=np.uint8)
IMAGES[0, :8] = IMAGES[0, :8, :, :1]  # greys
IMAGES[1, :8] = 0
IMAGES[2, :8] = 255


@pytest.mark.parametrize(("severity", "kept"), list(enumerate([0.75, 0.5, 0.4, 0.3, 0.15], start=1)))
def test_contrast_shrinks_to_the_mean_of_each_channel(severity, kept):
    found = digital.contrast(IMAGES / 255, severity, [])
    np.testing.assert_allclose(found.mean((1, 2)), IMAGES.mean((1, 2)) / 255)
    np.testing.assert_allclose(found.std((1, 2)), kept * IMAGES.std((1, 2)) / 255)


@pytest.mark.parametrize(("severity", "more"), list(enumerate([0.05, 0.1, 0.15, 0.2, 0.3], start=1)))
def test_brightness_adds_to_the_value_of_hsv(severity, more):
    hsv = rgb_to_hsv(IMAGES / 255)
    hsv[..., 2] = np.clip(hsv[..., 2] + more, 0, 1)
    np.testing.assert_allclose(digital.brightness(IMAGES / 255, severity, []), hsv_to_rgb(hsv), atol=1e-9)


@pytest.mark.parametrize(
    ("severity", "times", "more"), [(1, 0.3, 0), (2, 0.1, 0), (3, 1.5, 0), (4, 2, 0.1), (5, 2.5, 0.2)]
)
def test_saturate_changes_the_saturation_of_hsv(severity, times, more):
    hsv = rgb_to_hsv(IMAGES / 255)
    hsv[..., 1] = np.clip(hsv[..., 1] * times + more, 0, 1)
    np.testing.assert_allclose(digital.saturate(IMAGES / 255, severity, []), hsv_to_rgb(hsv), atol=1e-9)


@pytest.mark.parametrize(("severity", "quality"), list(enumerate([80, 65, 58, 50, 40], start=1)))
def test_jpeg_is_pillows(severity, quality):
    file = io.BytesIO()
    Image.fromarray(IMAGES[3]).save(file, "JPEG", quality=quality)
    np.testing.assert_array_equal(corrupt(IMAGES, "jpeg_compression", severity)[3], np.asarray(Image.open(file)))


@pytest.mark.parametrize(("severity", "side"), list(enumerate([30, 28, 27, 24, 20], start=1)))
def test_pixelate_goes_down_to_boxes_and_back(severity, side):
    small = Image.fromarray(IMAGES[3]).resize((side, side), Image.Resampling.BOX)
    expected = np.asarray(small.resize((32, 32), Image.Resampling.BOX))
    np.testing.assert_array_equal(corrupt(IMAGES, "pixelate", severity)[3], expected)


def test_affine_without_shift_is_the_identity():
    np.testing.assert_allclose(digital.affine(IMAGES / 255, np.zeros((6, 3, 2))), IMAGES / 255, atol=1e-12)


def test_affine_moves_the_corners_where_it_should():
    shifts = np.array([[[2, 1], [2, 1], [2, 1]]], float)  # everything two to the right, one down
    found = digital.affine(IMAGES[:1] / 255, shifts)[0]
    np.testing.assert_allclose(found[1:, 2:], IMAGES[0, :-1, :-2] / 255, atol=1e-9)
    np.testing.assert_allclose(found[0, 2:], IMAGES[0, 1, :-2] / 255, atol=1e-9)  # mirrored at the border


def test_affine_is_scipys_affine_transform():
    shifts = RANDOM.uniform(-2, 2, (6, 3, 2))
    corners = 16 + 10 * np.array([(1, 1), (1, -1), (-1, -1)])
    found = digital.affine(IMAGES / 255, shifts)
    for image, shift, result in zip(IMAGES / 255, shifts, found, strict=True):
        back = np.linalg.solve(np.c_[corners + shift, np.ones(3)], corners).T  # (column, row) from (column, row, 1)
        matrix = np.array([[back[1, 1], back[1, 0], back[1, 2]], [back[0, 1], back[0, 0], back[0, 2]]])
        for channel in range(3):
            expected = ndimage.affine_transform(
                image[..., channel], matrix[:, :2], matrix[:, 2], order=1, mode="mirror"
            )
            np.testing.assert_allclose(result[..., channel], expected, atol=1e-9)


@pytest.mark.parametrize("severity", range(1, 6))
def test_elastic_transform_is_affine_then_scipys_displacement(severity):
    strength, sigma, shift = 32 * np.array(
        [(0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)][severity - 1]
    )
    generator, twin = np.random.default_rng(3), np.random.default_rng(3)
    warped = digital.affine(IMAGES[:1] / 255, shift * (2 * generator.random((1, 3, 2)) - 1))[0]
    field = 2 * generator.random((2, 32, 32)) - 1
    right, down = (strength * ndimage.gaussian_filter(f, sigma, mode="reflect", truncate=3) for f in field)
    rows, columns = np.mgrid[:32, :32]
    found = digital.elastic_transform(IMAGES[:1] / 255, severity, [twin])[0]
    for channel in range(3):
        places = np.stack([rows + down, columns + right])
        expected = ndimage.map_coordinates(warped[..., channel], places, order=1, mode="reflect")
        np.testing.assert_allclose(found[..., channel], expected, atol=1e-9)
