"""Claims against numbers."""

import pytest
from fake_records import evidence, place

from batchensemble.lab.report.check import Verdict
from batchensemble.lab.report.views import higher, lower, on_a_par, ratio


def measured(**methods):
    return evidence(
        place({"accuracy": value}, {"method": method}, seed)
        for method, values in methods.items()
        for seed, value in enumerate(values)
    )


A, B = {"method": "A"}, {"method": "B"}


@pytest.mark.parametrize(
    ("view", "verdict"),
    [
        (higher("accuracy", A, B, "."), Verdict.HOLDS),
        (higher("accuracy", A, B, ".", by=0.05), Verdict.FAILS),
        (higher("accuracy", B, A, "."), Verdict.FAILS),
        (lower("accuracy", B, A, "."), Verdict.HOLDS),
        (lower("accuracy", A, B, "."), Verdict.FAILS),
        (on_a_par("accuracy", A, B, ".", within=0.041), Verdict.HOLDS),
        (on_a_par("accuracy", A, B, ".", within=0.02), Verdict.FAILS),
        (ratio("accuracy", A, B, ".", at_least=1.04), Verdict.HOLDS),
        (ratio("accuracy", A, B, ".", at_most=1.04), Verdict.FAILS),
        (higher("accuracy", A, {"method": "C"}, "."), Verdict.OPEN),
        (higher("ece", A, B, "."), Verdict.OPEN),
    ],
)
def test_verdicts(view, verdict) -> None:
    assert view(measured(A=[0.95, 0.97], B=[0.92, 0.92])).verdict is verdict


def test_the_numbers_are_in_the_words() -> None:
    found = higher("accuracy", A, B, "A beats B.")(measured(A=[0.95, 0.95], B=[0.92, 0.92]))
    words = "A: 95.00 ± 0.00 % (n = 2); B: 92.00 ± 0.00 % (n = 2); +3.00 points."
    assert found.markdown() == f"- **holds**: A beats B. {words}"
    assert "1.03 times" in ratio("accuracy", A, B, ".")(measured(A=[0.95], B=[0.92])).words


@pytest.mark.parametrize("view", [higher("accuracy", A, B, "."), lower("accuracy", A, B, ".")])
def test_a_difference_within_the_noise_decides_nothing(view) -> None:
    assert view(measured(A=[0.90, 0.96], B=[0.89, 0.95])).verdict is Verdict.UNDECIDED
    assert view(measured(A=[0.90], B=[0.89, 0.95])).verdict is not Verdict.UNDECIDED  # the noise is unknown


def test_a_band_may_be_wider_than_the_noise() -> None:
    assert (
        on_a_par("accuracy", A, B, ".", within=0.02)(measured(A=[0.9, 0.96], B=[0.89, 0.95])).verdict is Verdict.HOLDS
    )


def test_noise_and_single_seeds_are_admitted() -> None:
    view = higher("accuracy", A, B, ".")
    assert "within the noise" in view(measured(A=[0.90, 0.96], B=[0.89, 0.95])).words
    assert "within the noise" not in view(measured(A=[0.95, 0.96], B=[0.89, 0.90])).words
    assert "one seed" in view(measured(A=[0.95], B=[0.89, 0.90])).words
