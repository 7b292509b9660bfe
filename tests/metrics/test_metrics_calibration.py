"""Calibration against torchmetrics, scipy and loops written by hand."""

import pytest
import torch
from scipy.optimize import minimize_scalar
from torchmetrics.functional.classification import multiclass_calibration_error

from batchensemble.metrics import (
    adaptive_ece,
    ece,
    fit_temperature,
    nll_from_log_probs,
    reliability,
    temperature_scaled_nll,
)


def some(rows: int, classes: int = 5, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    probs = (2 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)).softmax(-1)
    # Nearly calibrated, so that bins err to both sides: were all too sure, every number of bins would agree.
    return probs.square() / probs.square().sum(-1, keepdim=True), probs.multinomial(1, generator=generator)[:, 0]


def confident(value: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor([[value, 1 - value]], dtype=dtype)


@pytest.mark.parametrize("bins", [1, 10, 15, 100])
@pytest.mark.parametrize("rows", [1, 10, 500])
def test_ece_against_torchmetrics(rows, bins) -> None:
    probs, labels = some(rows)
    expected = multiclass_calibration_error(probs, labels, num_classes=5, n_bins=bins, norm="l1")
    assert ece(probs, labels, bins) == pytest.approx(expected.item(), abs=1e-6)


def test_fifteen_bins_unless_said() -> None:
    probs, labels = some(300)
    assert ece(probs, labels) == ece(probs, labels, bins=15) != ece(probs, labels, bins=14)
    assert adaptive_ece(probs, labels) == adaptive_ece(probs, labels, bins=15)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("edge", range(8, 16))
def test_bins_are_closed_on_the_right(edge, dtype) -> None:
    on, above = torch.tensor(edge / 15, dtype=dtype), torch.tensor(edge / 15 + 1e-3, dtype=dtype)
    counts = reliability(confident(on.item(), dtype), torch.tensor([0])).count
    assert counts.nonzero().item() == edge - 1
    if edge < 15:
        counts = reliability(confident(above.item(), dtype), torch.tensor([0])).count
        assert counts.nonzero().item() == edge


def test_nothing_falls_out_of_the_first_and_the_last_bin() -> None:
    # Rounding may leave a sum a little off: confidence slightly above 1, or 1 / classes on the lowest edge.
    assert reliability(torch.tensor([[1.0000001, 0.0]]), torch.tensor([0])).count.tolist() == [0] * 14 + [1]
    many = reliability(torch.full((1, 100), 0.01), torch.tensor([0]), bins=100)
    assert many.count.nonzero().item() == 0


@pytest.mark.parametrize(("rows", "bins"), [(97, 10), (100, 10), (5, 15), (1, 15), (64, 1)])
def test_adaptive_ece_against_a_loop(rows, bins) -> None:
    probs, labels = some(rows)
    pairs = sorted((row.max().item(), float(row.argmax() == y)) for row, y in zip(probs, labels, strict=True))
    expected = 0.0
    for b in range(bins):
        share = pairs[b * rows // bins : (b + 1) * rows // bins]
        expected += abs(sum(p for p, _ in share) - sum(hit for _, hit in share)) / rows
    assert adaptive_ece(probs, labels, bins) == pytest.approx(expected, abs=1e-12)


def test_equal_confidences_share_a_bin_in_any_order() -> None:
    probs = torch.tensor([[0.75, 0.25]]).expand(12, 2)
    labels = torch.tensor([0] * 9 + [1] * 3)
    for order in (torch.arange(12), torch.arange(12).flip(0)):
        assert adaptive_ece(probs, labels[order], bins=4) == 0
    counts = reliability(torch.cat([probs, confident(0.9)]), torch.zeros(13).long(), 4, "mass").count
    assert sorted(counts.tolist()) == [0, 0, 1, 12]


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_a_diagram_adds_up(binning) -> None:
    probs, labels = some(400)
    diagram = reliability(probs, labels, 7, binning)
    assert diagram.edges.shape == (8,)
    assert (diagram.edges[0], diagram.edges[-1]) == (0, 1)
    assert diagram.count.sum() == 400
    right = (probs.argmax(-1) == labels).double()
    assert (diagram.accuracy * diagram.count).sum().item() == pytest.approx(right.sum().item())
    assert (diagram.confidence * diagram.count).sum().item() == pytest.approx(probs.amax(-1).sum().item())
    full = diagram.count > 0
    assert (diagram.confidence[full] > diagram.edges[:-1][full]).all()
    assert (diagram.confidence[full] <= diagram.edges[1:][full]).all()
    if binning == "mass":
        assert diagram.count.max() - diagram.count.min() <= 1


def test_extremes() -> None:
    sure = torch.eye(4)
    for error in (ece, adaptive_ece):
        assert error(sure, torch.arange(4)) == 0
        assert error(sure, torch.arange(4).roll(1)) == 1
    empty = reliability(sure, torch.arange(4), bins=5)
    assert empty.accuracy.tolist() == empty.confidence.tolist() == [0, 0, 0, 0, 1]


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="at least one bin, got 0"):
        ece(*some(3), bins=0)
    with pytest.raises(ValueError, match='"width" or "mass", got \'height\''):
        reliability(*some(3), binning="height")


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 3.0, 30.0])
def test_temperature_against_scipy(scale) -> None:
    logits = torch.randn(300, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    labels = torch.distributions.Categorical(logits=logits).sample()
    log_probs = (scale * logits).log_softmax(-1)

    def loss(log_temperature: float) -> float:
        return nll_from_log_probs((log_probs / 2.718281828459045**log_temperature).log_softmax(-1), labels)

    expected = minimize_scalar(loss, bounds=(-4, 4), method="bounded", options={"xatol": 1e-10})
    temperature = fit_temperature(log_probs, labels)
    assert temperature == pytest.approx(2.718281828459045**expected.x, rel=1e-5)
    assert nll_from_log_probs((log_probs / temperature).log_softmax(-1), labels) <= expected.fun + 1e-12


@pytest.mark.parametrize("sure", [0.6, 0.9999999])
def test_temperature_stays_within_its_bounds_and_says_why(sure: float) -> None:
    right = torch.tensor([[sure, 1 - sure], [1 - sure, sure]], dtype=torch.float64).log()
    with pytest.warns(UserWarning, match=r"every label is the most probable class.* bound 0\.01") as warned:
        assert fit_temperature(right, torch.tensor([0, 1])) == 0.01
    assert warned[0].filename == __file__
    with pytest.warns(UserWarning, match=r"know less than nothing about these labels.* bound 100\.0"):
        assert fit_temperature(right, torch.tensor([1, 0])) == 100


def test_temperature_stays_one_where_it_changes_nothing() -> None:
    assert fit_temperature(torch.full((3, 4), 0.25).log(), torch.tensor([0, 1, 2])) == 1


def test_temperatures_near_a_bound_are_found() -> None:
    for temperature in (0.011, 95.0):
        log_probs = (torch.tensor([[0.75, 0.25]] * 4, dtype=torch.float64).log() * temperature).log_softmax(-1)
        assert fit_temperature(log_probs, torch.tensor([0, 0, 0, 1])) == pytest.approx(temperature)


def test_temperature_scaled_nll_is_both_halves_with_the_other_halfs_temperature() -> None:
    probs, labels = some(101)
    log_probs = probs.log()
    order = torch.randperm(101, generator=torch.Generator().manual_seed(3))
    first, second = order[:51], order[51:]
    expected = 0.0
    for fitted, used in ((first, second), (second, first)):
        scaled = (log_probs[used] / fit_temperature(log_probs[fitted], labels[fitted])).log_softmax(-1)
        expected += torch.nn.functional.nll_loss(scaled, labels[used], reduction="sum").item() / 101
    found = temperature_scaled_nll(log_probs, labels, torch.Generator().manual_seed(3))
    assert found == pytest.approx(expected, rel=1e-12)
    assert found < nll_from_log_probs(log_probs, labels)  # squaring made these probabilities too sure


def test_the_temperature_a_model_already_has_does_not_matter() -> None:
    probs, labels = some(200)
    one, three = (
        temperature_scaled_nll((scale * probs.log()).log_softmax(-1), labels, torch.Generator().manual_seed(0))
        for scale in (1, 3)
    )
    assert one == pytest.approx(three, rel=1e-9)


def test_classes_without_probability_do_not_matter() -> None:
    probs, labels = some(200, classes=3)
    wider = torch.zeros(200, 5, dtype=torch.float64)
    wider[:, [0, 2, 3]] = probs  # as the rows of a task with fewer classes than others in one prediction
    labels_there = torch.tensor([0, 2, 3])[labels]
    assert fit_temperature(wider.log(), labels_there) == pytest.approx(fit_temperature(probs.log(), labels), rel=1e-12)
    found, expected = (
        temperature_scaled_nll(p.log(), y, torch.Generator().manual_seed(0))
        for p, y in ((wider, labels_there), (probs, labels))
    )
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_label_without_probability_is_infinitely_bad_at_every_temperature() -> None:
    probs, labels = some(50)
    more = torch.cat([probs, torch.tensor([[0.1, 0.0, 0.7, 0.2, 0.0]], dtype=torch.float64)]).log()
    wrong = torch.cat([labels, torch.tensor([1])])
    assert fit_temperature(more, wrong) == fit_temperature(probs.log(), labels)
    assert temperature_scaled_nll(more, wrong) == nll_from_log_probs(more, wrong) == float("inf")
    right = torch.tensor([[0.8, 0.1, 0.1], [0.7, 0.0, 0.3]]).log()
    with pytest.warns(UserWarning, match=r"every label is the most probable class.* bound 0\.01"):
        assert fit_temperature(right, torch.tensor([0, 1])) == 0.01
    assert fit_temperature(torch.eye(2).log(), torch.tensor([1, 0])) == 1
    assert temperature_scaled_nll(torch.eye(2).log(), torch.tensor([0, 1])) == 0


def test_temperature_needs_two_rows() -> None:
    with pytest.raises(ValueError, match="two rows at least"):
        temperature_scaled_nll(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([0]))
