import numpy as np
import pytest
from scipy import ndimage

from batchensemble.lab.data.corruptions import corrupt, spatter

WHITE, BLACK = (np.full((8, 32, 32, 3), level, np.uint8) for level in (255, 0))


def square(low=10, high=20, level=200.0):
    layer = np.zeros((1, 32, 32))
    layer[:, low:high, low:high] = level
    return layer


def test_edges_of_a_square_are_its_outline():
    rims = spatter.edges(square())[0]
    solid = square()[0] > 0
    outline = ndimage.binary_dilation(solid, np.ones((3, 3))) & ~ndimage.binary_erosion(solid, np.ones((3, 3)))
    assert rims.any()
    assert not (rims & ~outline).any()
    pieces, count = ndimage.label(~rims)
    assert pieces[15, 15] != pieces[0, 0]  # closed: inside and outside do not touch
    assert count == 2


def test_weak_edges_count_only_when_they_touch_strong_ones():
    faint = square(level=20.0)  # gradient up to 80: above 50, below 150
    assert not spatter.edges(faint).any()
    joined = faint.copy()
    joined[:, 10:20, 10:13] = 200
    assert spatter.edges(joined)[0, :, 18:22].any()


def test_distances_are_those_of_each_image_alone():
    random = np.random.default_rng(0)
    rims = random.random((5, 32, 32)) < np.array([0.5, 0.05, 0.005, 0.002, 0])[:, None, None]
    found = spatter.distances(rims)
    for image, distance in zip(rims[:4], found[:4], strict=True):
        np.testing.assert_allclose(distance, np.minimum(ndimage.distance_transform_edt(~image), 20))
    assert (found[4] == 20).all()
    assert (spatter.distances(rims[4:]) == 20).all()


def test_equalised_spreads_levels_by_their_share():
    levels = np.array([[[3, 3, 5, 5], [5, 5, 9, 9]]], np.uint8)
    expected = {3: 0, 5: round(255 * 4 / 6), 9: 255}
    np.testing.assert_array_equal(spatter.equalised(levels)[0], np.vectorize(expected.get)(levels[0]))
    assert (spatter.equalised(np.full((1, 4, 4), 7, np.uint8)) == 7).all()


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_water_only_brightens_and_is_pale_blue(severity):
    drops = corrupt(BLACK, "spatter", severity)
    wet = drops.any(-1)
    assert 0.005 < wet.mean() < 0.6
    red, green, blue = np.moveaxis(drops[wet].astype(int), -1, 0)
    assert (green == blue).all()
    assert (green >= red).all()
    assert drops.max() == int(0.5 * 238)  # the deepest drop has the published weight
    assert (corrupt(WHITE, "spatter", severity) == 255).all()


@pytest.mark.parametrize("severity", [4, 5])
def test_mud_covers_in_brown(severity):
    muddy = corrupt(WHITE, "spatter", severity)
    covered = (muddy < 255).any(-1)
    assert 0.005 < covered.mean() < 0.4
    cover = (255 - muddy[covered].astype(float)) / (255 - np.array([63, 42, 20]))
    assert cover.min() > 0.79
    np.testing.assert_allclose(cover, cover[:, :1].repeat(3, 1), atol=0.01)


def test_severities_four_and_five_wet_what_lies_above_the_threshold():
    wet = np.zeros((1, 32, 32), bool)
    wet[:, 8:24, 8:24] = True
    muddy = spatter.muddied(np.ones((1, 32, 32, 3)), wet, 0.6)
    np.testing.assert_allclose(muddy[0, 16, 16] * 255, [63, 42, 20], atol=1e-3)
    assert (muddy[0, 0, 0] == 1).all()
