import numpy as np
import pytest

from batchensemble.lab.data.corruptions import corrupt
from batchensemble.lab.data.corruptions.frost import drawn_textures

BLACK = np.zeros((30, 32, 32, 3), np.uint8)


@pytest.fixture
def flat(monkeypatch):
    """Flat patterns of other levels, which can be told apart, instead of drawn ones."""
    patterns = [np.full((50, 60, 3), 50 * i, np.uint8) for i in range(5)]
    monkeypatch.setattr("batchensemble.lab.data.corruptions.frost.drawn_textures", lambda: patterns)


def test_drawn_ice_is_always_the_same_and_like_ice():
    textures = drawn_textures()
    drawn_textures.cache_clear()
    for one, again in zip(textures, drawn_textures(), strict=True):
        np.testing.assert_array_equal(one, again)
        assert one.shape == (200, 200, 3)
        assert one.std() > 30  # a pattern, not a glaze
        assert one[..., 2].mean() > one[..., 0].mean()  # cold
    assert len({texture.tobytes() for texture in textures}) == 5


@pytest.mark.parametrize(("severity", "ice"), list(enumerate([0.2, 0.3, 0.4, 0.4, 0.45], start=1)))
@pytest.mark.usefixtures("flat")
def test_frost_is_the_published_sum(severity, ice):
    frozen = corrupt(BLACK, "frost", severity)
    levels = set(np.unique(frozen[..., 2]).tolist())
    expected = {int(ice * 50 * i + d) for i in range(5) for d in (-0.5, 0.5)} | {int(ice * 50 * i) for i in range(5)}
    assert levels <= expected
    assert len(levels) == 5  # thirty images: every pattern occurs


@pytest.mark.usefixtures("flat")
def test_severity_keeps_the_published_share_of_the_image():
    grey = np.full_like(BLACK, 100)
    for severity, kept in enumerate([1, 1, 0.9, 0.85, 0.75], start=1):
        added = corrupt(grey, "frost", severity).astype(int)
        ice = corrupt(BLACK, "frost", severity).astype(int)
        assert np.abs(added - ice - 100 * kept).max() <= 1
