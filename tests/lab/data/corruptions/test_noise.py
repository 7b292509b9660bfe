import numpy as np
import pytest

from batchensemble.lab.data.corruptions import corrupt

GREY = np.full((40, 32, 32, 3), 128, np.uint8)


def deviation(name, severity, level=128):
    return corrupt(np.full_like(GREY, level), name, severity).astype(float) / 255 - level / 255


@pytest.mark.parametrize(("severity", "std"), list(enumerate([0.04, 0.06, 0.08, 0.09, 0.10], start=1)))
def test_gaussian_noise_has_the_published_size(severity, std):
    assert deviation("gaussian_noise", severity).std() == pytest.approx(std, rel=0.02)


@pytest.mark.parametrize(("severity", "std"), list(enumerate([0.06, 0.1, 0.12, 0.16, 0.2], start=1)))
def test_speckle_noise_grows_with_the_light(severity, std):
    assert deviation("speckle_noise", severity).std() == pytest.approx(std * 128 / 255, rel=0.02)
    assert deviation("speckle_noise", severity, level=40).std() == pytest.approx(std * 40 / 255, rel=0.03)
    assert not deviation("speckle_noise", severity, level=0).any()


@pytest.mark.parametrize(("severity", "light"), list(enumerate([500, 250, 100, 75, 50], start=1)))
def test_shot_noise_has_the_variance_of_counted_photons(severity, light):
    assert deviation("shot_noise", severity).var() == pytest.approx(128 / 255 / light, rel=0.05)


@pytest.mark.parametrize(("severity", "amount"), list(enumerate([0.01, 0.02, 0.03, 0.05, 0.07], start=1)))
def test_impulse_noise_strikes_the_published_share_of_values(severity, amount):
    struck = corrupt(GREY, "impulse_noise", severity)
    assert set(np.unique(struck)) == {0, 128, 255}
    assert np.mean(struck != 128) == pytest.approx(amount, rel=0.05)
    assert np.mean(struck == 255) == pytest.approx(amount / 2, rel=0.1)
    assert (struck == 255).any(-1).sum() > (struck == 255).all(-1).sum()  # channels apart
