import numpy as np
from sklearn.datasets import load_digits as bundled

from batchensemble.lab.data import draw_noise, load_digits


def test_digits_are_all_of_scikit_learns_in_two_parts():
    train, test = load_digits(test=0.2, seed=1)
    seen = {
        (image.numpy().tobytes(), int(label))
        for part in (train, test)
        for image, label in zip(part.images, part.labels, strict=True)
    }
    original = np.round(bundled().images * 255 / 16).astype(np.uint8)
    assert seen == {(image.tobytes(), int(label)) for image, label in zip(original, bundled().target, strict=True)}
    assert len(train) + len(test) == 1797
    assert train.images.max() == 255
    assert set(test.labels.tolist()) == set(range(10))


def test_noise_is_of_the_digits_size_and_drawn_by_its_seed():
    noise, again, other = draw_noise(100), draw_noise(100), draw_noise(100, seed=1)
    assert noise.images.shape[1:] == load_digits()[0].images.shape[1:]
    assert (noise.images.min(), noise.images.max()) == (0, 255)
    assert (noise.images == again.images).all()
    assert (noise.images != other.images).any()
