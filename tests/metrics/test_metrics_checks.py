"""Bad input never becomes a number: every metric refuses it, and says what it wanted."""

import pytest
import torch

from batchensemble import metrics

LABELS = torch.tensor([0, 1, 2])
OF_ROWS = [
    metrics.accuracy,
    metrics.nll,
    metrics.brier,
    metrics.ece,
    metrics.adaptive_ece,
    metrics.reliability,
]
OF_LOGS = [metrics.nll_from_log_probs, metrics.fit_temperature, metrics.temperature_scaled_nll]
OF_MEMBERS = [metrics.member_accuracy, metrics.disagreement_over_error, metrics.pairwise_kl_over_error]
LABELLED = [*OF_ROWS, *OF_LOGS, *OF_MEMBERS]


def good_input(metric) -> torch.Tensor:
    probs = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    if metric in OF_LOGS:
        return probs.log()
    return torch.stack([probs, probs.flip(0)]) if metric in OF_MEMBERS else probs


@pytest.mark.parametrize("metric", LABELLED, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (torch.tensor([0, 1, 3]), ValueError, r"labels must lie in \[0, 3\), but range from 0 to 3"),
        (torch.tensor([0, -1, 2]), ValueError, "from -1 to 2"),
        (torch.tensor([0, 1]), ValueError, r"one label for each of the 3 rows, got shape \(2,\)"),
        (torch.eye(3).long(), ValueError, r"got shape \(3, 3\)"),
        (torch.tensor([0.0, 1.0, 2.0]), TypeError, "labels must be integers, not torch.float32"),
        (torch.tensor([True, False, True]), TypeError, "not torch.bool"),
        ([0, 1, 2], TypeError, "labels as a torch tensor, got list"),
    ],
    ids=["too large", "negative", "too few", "one-hot", "floats", "bools", "list"],
)
def test_bad_labels(metric, labels, error, message) -> None:
    with pytest.raises(error, match=message):
        metric(good_input(metric), labels)


@pytest.mark.parametrize("metric", LABELLED, ids=lambda metric: metric.__name__)
@pytest.mark.filterwarnings("ignore:every label is the most probable class")
def test_bad_probabilities(metric) -> None:
    good = good_input(metric)
    with pytest.raises(ValueError, match="NaN"):
        metric(torch.where(good == good.max(), torch.nan, good), LABELS)
    with pytest.raises(ValueError, match="must sum to 1 over the last axis, but one row sums to"):
        metric(good + 1, LABELS)
    with pytest.raises(ValueError, match=r"expected .*probabilities of shape .*rows, classes"):
        metric(good[0], LABELS)
    with pytest.raises(ValueError, match=r"of two classes, give both, torch\.stack\(\[1 - p, p\], -1\)"):
        metric(good[..., 0], LABELS)  # those of a sigmoid
    with pytest.raises(ValueError, match="empty"):
        metric(good[..., :0, :], LABELS[:0])
    with pytest.raises(TypeError, match="as a torch tensor, got list"):
        metric(good.tolist(), LABELS)
    metric(good, LABELS)


@pytest.mark.parametrize("metric", OF_ROWS, ids=lambda metric: metric.__name__)
def test_what_only_probabilities_can_get_wrong(metric) -> None:
    with pytest.raises(ValueError, match=r"must not be negative, but the smallest is -0\.5"):
        metric(torch.tensor([[1.5, -0.5, 0.0]] * 3), LABELS)
    with pytest.raises(TypeError, match=r"must be floating-point numbers, not torch\.int64"):
        metric(torch.eye(3).long(), LABELS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("metric", LABELLED, ids=lambda metric: metric.__name__)
def test_half_precision_is_good_enough(metric, dtype) -> None:
    probs = torch.randn(40, 100, generator=torch.Generator().manual_seed(0)).softmax(-1)
    labels = torch.where(torch.arange(40) % 2 == 0, probs.argmax(-1), torch.arange(40)).to(torch.uint8)
    value = (
        probs.log() if metric in OF_LOGS else torch.stack([probs, probs.roll(1, 0)]) if metric in OF_MEMBERS else probs
    )

    def measured(value: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)  # temperature scaling takes random halves
        found = metric(value, labels)
        return torch.as_tensor(found.error if metric is metrics.reliability else found, dtype=torch.float64)

    half, exact = value.to(dtype), measured(value.double())
    assert (exact != 0).any()
    torch.testing.assert_close(measured(half), exact, rtol=2e-3, atol=0)  # as near as the input is
    torch.testing.assert_close(measured(half), measured(half.double()), rtol=1e-12, atol=0)  # nothing is added to that


@pytest.mark.parametrize("metric", [*OF_ROWS[:-1], OF_LOGS[0]], ids=lambda metric: metric.__name__)
def test_one_number_is_a_float_and_inputs_are_not_touched(metric) -> None:
    probs, labels = good_input(metric).requires_grad_(), LABELS.clone()
    before = probs.detach().clone()
    assert type(metric(probs, labels)) is float
    assert torch.equal(probs, before)
    assert torch.equal(labels, LABELS)


def test_every_public_name_is_there() -> None:
    assert sorted(metrics.__all__) == sorted(set(metrics.__all__))
    assert all(callable(getattr(metrics, name)) for name in metrics.__all__)


@pytest.mark.parametrize("metric", OF_ROWS, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize("total", [0.9, 0.97, 1.03, 1.1])
def test_one_row_that_sums_to_more_or_less_than_one_is_refused(metric, total: float) -> None:
    probs = good_input(metric)
    probs[1] *= total
    with pytest.raises(ValueError, match=f"one row sums to {total}"):
        metric(probs, LABELS)


def test_probabilities_that_were_stored_in_half_precision_are_good() -> None:
    probs = torch.randn(500, 1000, generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)
    stored, labels = probs.bfloat16(), torch.arange(500)
    assert (stored.double().sum(-1) - 1).abs().max() > 2e-3
    assert metrics.nll(stored, labels) == pytest.approx(metrics.nll(probs, labels), rel=1e-2)


def test_what_comes_back_has_no_gradient() -> None:
    probs = good_input(metrics.accuracy).requires_grad_()
    assert not metrics.entropy(probs).requires_grad
    assert not metrics.base_kl(torch.stack([probs, probs])).requires_grad


def test_a_seed_is_no_generator() -> None:
    log_probs = torch.full((3, 3), 1 / 3).log()
    with pytest.raises(TypeError, match=r"expected a torch\.Generator, .*, got int$"):
        metrics.temperature_scaled_nll(log_probs, LABELS, generator=3)
    with pytest.raises(TypeError, match=r"expected a torch\.Generator, .*, got int$"):
        metrics.paired_test(torch.arange(20.0), torch.zeros(20), generator=3)
