import numpy as np
import pytest

from batchensemble.lab.data import procedural
from batchensemble.lab.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt

IMAGES = procedural(train=24, test=10)[0].images.permute(0, 2, 3, 1).contiguous().numpy()
RANDOM = sorted(
    set(CORRUPTIONS)
    - {"gaussian_blur", "defocus_blur", "zoom_blur", "brightness", "contrast"}
    - {"saturate", "jpeg_compression", "pixelate"}
)


def test_there_are_nineteen_of_which_the_last_four_are_extra():
    assert len(CORRUPTIONS) == 19
    assert list(CORRUPTIONS)[15:] == ["speckle_noise", "gaussian_blur", "spatter", "saturate"]


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_pieces_give_the_same_images_as_the_whole(name):
    for severity in (1, 3, 5):
        whole = corrupt(IMAGES, name, severity, seed=3)
        pieces = [corrupt(IMAGES[i:j], name, severity, seed=3, first=i) for i, j in ((0, 1), (1, 9), (9, 24))]
        np.testing.assert_array_equal(np.concatenate(pieces), whole)
        assert (whole.dtype, whole.shape) == (np.uint8, IMAGES.shape)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_severity_changes_the_images_and_the_last_more_than_the_first(name):
    changes = [np.abs(corrupt(IMAGES, name, s).astype(int) - IMAGES).mean() for s in SEVERITIES]
    assert min(changes) > 0.2
    # the published affine shift of elastic_transform shrinks as its displacement grows
    assert name == "elastic_transform" or changes[4] > changes[0]


@pytest.mark.parametrize("name", RANDOM)
def test_seed_and_place_decide_the_random_numbers(name):
    same = np.repeat(IMAGES[:1], 8, axis=0)
    one, other = (corrupt(same, name, 5, seed=seed) for seed in (0, 1))
    assert not np.array_equal(one, other)
    assert len({image.tobytes() for image in one}) == 8


@pytest.mark.parametrize("name", sorted(set(CORRUPTIONS) - set(RANDOM)))
def test_the_others_need_no_random_numbers(name):
    np.testing.assert_array_equal(corrupt(IMAGES, name, 4, seed=0), corrupt(IMAGES, name, 4, seed=1))


def test_the_input_is_left_alone():
    before = IMAGES.copy()
    for name in CORRUPTIONS:
        corrupt(IMAGES, name, 2)
    np.testing.assert_array_equal(IMAGES, before)


@pytest.mark.parametrize(
    ("images", "name", "severity", "message"),
    [
        (IMAGES, "rain", 1, "unknown corruption 'rain'; known: gaussian_noise"),
        (IMAGES, "fog", 0, "1 to 5, got 0"),
        (IMAGES, "fog", 6, "1 to 5, got 6"),
        (IMAGES / 255, "fog", 1, "uint8"),
        (IMAGES[0], "fog", 1, r"got uint8 \(32, 32, 3\)"),
        (IMAGES.transpose(0, 3, 1, 2), "fog", 1, r"got uint8 \(24, 3, 32, 32\)"),
    ],
)
def test_bad_arguments_are_refused(images, name, severity, message):
    with pytest.raises(ValueError, match=message):
        corrupt(images, name, severity)
