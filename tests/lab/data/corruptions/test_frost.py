import numpy as np
import pytest
from PIL import Image

from batchensemble.lab.data.corruptions import corrupt
from batchensemble.lab.data.corruptions.frost import FILES, drawn_textures, read_textures

BLACK = np.zeros((30, 32, 32, 3), np.uint8)


@pytest.fixture
def photographs(tmp_path):
    """Five flat pictures of other levels, which can be told apart, as files of the published names."""
    for i, name in enumerate(FILES):
        Image.new("RGB", (300, 250), (50 * i + 10, 50 * i, 50 * i)).save(tmp_path / name, quality=100)
    return tmp_path


def test_drawn_ice_is_always_the_same_and_like_ice():
    textures = drawn_textures()
    drawn_textures.cache_clear()
    for one, again in zip(textures, drawn_textures(), strict=True):
        np.testing.assert_array_equal(one, again)
        assert one.shape == (200, 200, 3)
        assert one.std() > 30  # a pattern, not a glaze
        assert one[..., 2].mean() > one[..., 0].mean()  # cold
    assert len({texture.tobytes() for texture in textures}) == 5


def test_photographs_are_taken_at_every_fifth_pixel(tmp_path, photographs):
    picture = np.random.default_rng(0).integers(256, size=(200, 300, 3), dtype=np.uint8)
    Image.fromarray(picture).save(photographs / FILES[0])
    textures = read_textures(photographs)
    np.testing.assert_array_equal(textures[0], picture[2::5, 2::5])
    assert textures[1].shape == (50, 60, 3)


@pytest.mark.parametrize(("severity", "ice"), list(enumerate([0.2, 0.3, 0.4, 0.4, 0.45], start=1)))
def test_frost_of_photographs_is_the_published_sum(photographs, severity, ice):
    frozen = corrupt(BLACK, "frost", severity, frost_dir=photographs)
    levels = set(np.unique(frozen[..., 2]).tolist())
    expected = {int(ice * 50 * i + d) for i in range(5) for d in (-0.5, 0.5)} | {int(ice * 50 * i) for i in range(5)}
    assert levels <= expected
    assert len(levels) == 5  # thirty images: every photograph occurs


def test_severity_keeps_the_published_share_of_the_image(photographs):
    grey = np.full_like(BLACK, 100)
    for severity, kept in enumerate([1, 1, 0.9, 0.85, 0.75], start=1):
        added = corrupt(grey, "frost", severity, frost_dir=photographs).astype(int)
        ice = corrupt(BLACK, "frost", severity, frost_dir=photographs).astype(int)
        assert np.abs(added - ice - 100 * kept).max() <= 1


def test_missing_photographs_are_named(tmp_path, photographs):
    (photographs / "frost3.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"no frost3\.png; frost needs frost1\.png"):
        corrupt(BLACK, "frost", 1, frost_dir=photographs)
