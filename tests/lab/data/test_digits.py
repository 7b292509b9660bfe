import numpy as np
from sklearn.datasets import load_digits as bundled

from batchensemble.lab.data import load_digits


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
