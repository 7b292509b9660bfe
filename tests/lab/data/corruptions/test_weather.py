import numpy as np
import pytest

from batchensemble.lab.data.corruptions import corrupt, weather

BLACK, WHITE = (np.full((8, 32, 32, 3), level, np.uint8) for level in (0, 255))
IMAGES = np.random.default_rng(0).integers(256, size=(8, 32, 32, 3), dtype=np.uint8)


def diamond_square(noise, decay):
    """The fractal, point by point."""
    size, field = len(noise), np.zeros_like(noise)
    step, wibble = size, 100.0
    while step >= 2:
        half = step // 2
        for r in range(half, size, step):
            for c in range(half, size, step):
                near = [field[(r + a) % size, (c + b) % size] for a in (-half, half) for b in (-half, half)]
                field[r, c] = sum(near) / 4 + wibble**2 * noise[r, c]
        for r in range(0, size, half):
            for c in range(half if r % step == 0 else 0, size, step):
                near = [
                    field[(r + a) % size, (c + b) % size] for a, b in ((half, 0), (-half, 0), (0, half), (0, -half))
                ]
                field[r, c] = sum(near) / 4 + wibble**2 * noise[r, c]
        step, wibble = half, wibble / decay
    field -= field.min()
    return field / field.max()


@pytest.mark.parametrize("decay", [3.0, 1.75])
def test_plasma_is_the_diamond_square_fractal(decay):
    noise = np.random.default_rng(1).uniform(-1, 1, (3, 32, 32))
    expected = np.stack([diamond_square(field.copy(), decay) for field in noise])
    np.testing.assert_allclose(weather.plasma(noise, decay), expected, atol=1e-12)


@pytest.mark.parametrize(("severity", "weight"), list(enumerate([0.2, 0.5, 0.75, 1.0, 1.5], start=1)))
def test_fog_keeps_the_range_and_lifts_the_dark(severity, weight):
    half = np.where(np.arange(32)[:, None, None] < 16, BLACK, WHITE)
    foggy = corrupt(half, "fog", severity) / 255
    dark, bright = foggy[:, :16], foggy[:, 16:]
    assert bright.min() >= 1 / (1 + weight) - 1 / 255
    assert dark.max() <= weight / (1 + weight)
    assert (corrupt(half, "fog", severity)[:, :16] > 0).any()
    assert (foggy[..., 0] == foggy[..., 1]).all()  # fog is grey


def test_snow_whitens_and_lies_twice():
    for severity in range(1, 6):
        layer = corrupt(BLACK, "snow", severity).astype(int)
        assert (layer[..., 0] == layer[..., 2]).all()
        assert np.abs(layer - layer[:, ::-1, ::-1]).max() <= 1  # with its own half turn
        assert (corrupt(WHITE, "snow", severity) == 255).all()
        assert layer.std() > 5
        assert (corrupt(IMAGES, "snow", severity).astype(int) - IMAGES).min() >= -1  # nothing gets darker
