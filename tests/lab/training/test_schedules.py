"""The paper's and the released code's learning rates."""

import pytest

from batchensemble.lab.training.schedules import SCHEDULES, inverse_square_root


@pytest.mark.parametrize(
    ("name", "epoch", "factor"),
    [
        ("paper", 0, 1), ("paper", 124.99, 1), ("paper", 125, 0.1), ("paper", 187.5, 0.01),
        ("released", 0, 0), ("released", 0.5, 0.5), ("released", 1, 1), ("released", 99.9, 1),
        ("released", 100, 0.1), ("released", 200, 0.01), ("released", 225, 0.001),
        ("cosine", 0, 1), ("cosine", 125, 0.5), ("cosine", 250, 0),
    ],
)  # fmt: skip
def test_factor_of_250_epochs(name, epoch, factor):
    assert SCHEDULES[name](epoch, 250) == pytest.approx(factor)


def test_the_transformers_schedule_is_the_published_formula():
    width, warmup, steps = 512, 4000, 250
    schedule = inverse_square_root(warmup, steps)
    top = width**-0.5 * warmup**-0.5
    for step in (1, 7, 3999, 4000, 4001, 100_000):
        published = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert top * schedule((step - 1) / steps, 400) == pytest.approx(published)
