"""Claims against numbers."""

import pytest
from fake_records import evidence, place

from batchensemble.lab.report import Quantity
from batchensemble.lab.report.check import Verdict
from batchensemble.lab.report.views import higher, lower, no_better, no_worse, on_a_par, ratio


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
        (higher("accuracy", B, A, "."), Verdict.FAILS),
        (lower("accuracy", B, A, "."), Verdict.HOLDS),
        (lower("accuracy", A, B, "."), Verdict.FAILS),
        (on_a_par("accuracy", A, B, ".", within=0.07), Verdict.HOLDS),
        (on_a_par("accuracy", A, B, ".", within=0.041), Verdict.UNDECIDED),
        (on_a_par("accuracy", A, B, ".", within=0.01), Verdict.FAILS),
        (ratio("accuracy", A, B, ".", at_least=1.02), Verdict.HOLDS),
        (ratio("accuracy", A, B, ".", at_least=1.04), Verdict.UNDECIDED),
        (ratio("accuracy", A, B, ".", at_most=1.02), Verdict.FAILS),
        (higher("accuracy", A, {"method": "C"}, "."), Verdict.OPEN),
        (higher("ece", A, B, "."), Verdict.OPEN),
    ],
)
def test_verdicts(view, verdict) -> None:
    assert view(measured(A=[0.95, 0.97] * 3, B=[0.92, 0.92])).verdict is verdict


@pytest.mark.parametrize(
    ("metric", "better", "worse"),
    [("accuracy", A, B), (Quantity("accuracy", "errors", better="lower"), B, A)],
    ids=["higher is better", "lower is better"],
)
def test_no_better_and_no_worse_look_at_one_side(metric, better, worse) -> None:
    found = measured(A=[0.95, 0.95], B=[0.92, 0.92])
    assert no_better(metric, worse, better, ".", within=0.0)(found).verdict is Verdict.HOLDS
    assert no_better(metric, better, worse, ".", within=0.02)(found).verdict is Verdict.FAILS
    assert no_better(metric, better, worse, ".", within=0.04)(found).verdict is Verdict.HOLDS
    assert no_worse(metric, better, worse, ".", within=0.0)(found).verdict is Verdict.HOLDS
    assert no_worse(metric, worse, better, ".", within=0.02)(found).verdict is Verdict.FAILS
    assert no_worse(metric, worse, better, ".", within=0.04)(found).verdict is Verdict.HOLDS


@pytest.mark.parametrize("view", [no_better, no_worse])
def test_of_what_nobody_wants_more_or_less_nothing_is_better(view) -> None:
    with pytest.raises(ValueError, match="neither more nor less disagreement is better"):
        view("disagreement", A, B, ".", within=0.1)


def test_two_seeds_know_little_of_their_own_noise() -> None:
    """Four standard errors apart, which two seeds are by chance once in seven times."""
    few, many = measured(A=[0.95, 0.97], B=[0.92, 0.92]), measured(A=[0.95, 0.97] * 3, B=[0.92, 0.92] * 3)
    assert higher("accuracy", A, B, ".")(few).verdict is Verdict.UNDECIDED
    assert higher("accuracy", A, B, ".")(many).verdict is Verdict.HOLDS


def test_the_numbers_are_in_the_words() -> None:
    found = higher("accuracy", A, B, "A beats B.")(measured(A=[0.95, 0.95], B=[0.92, 0.92]))
    words = "A: 95.00 % (n = 2); B: 92.00 % (n = 2); +3.00 points with a standard error of 0.00."
    assert found.markdown() == f"- **holds**: A beats B. {words}"
    assert "1.03 times" in ratio("accuracy", A, B, ".")(measured(A=[0.95], B=[0.92])).words


@pytest.mark.parametrize(
    "view",
    [
        higher("accuracy", A, B, "."),
        lower("accuracy", A, B, "."),
        on_a_par("accuracy", A, B, ".", within=0.02),
        ratio("accuracy", A, B, ".", at_least=1.0),
    ],
)
def test_a_difference_within_the_noise_decides_nothing(view) -> None:
    assert view(measured(A=[0.90, 0.96], B=[0.89, 0.95])).verdict is Verdict.UNDECIDED


def test_a_band_may_be_wider_than_the_noise() -> None:
    noisy = measured(A=[0.9, 0.96], B=[0.89, 0.95])
    assert on_a_par("accuracy", A, B, ".", within=0.2)(noisy).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("view", "verdict"),
    [
        (higher("accuracy", A, B, "."), Verdict.ONE_YES),
        (lower("accuracy", A, B, "."), Verdict.ONE_NO),
        (ratio("accuracy", A, B, ".", at_least=1.01), Verdict.ONE_YES),
        (lower("accuracy", B, A, ".", counted=True), Verdict.HOLDS),
        (ratio("accuracy", A, B, ".", at_most=1.01, counted=True), Verdict.FAILS),
    ],
)
def test_one_seed_says_so_unless_the_number_is_counted(view, verdict) -> None:
    assert view(measured(A=[0.95], B=[0.89, 0.90] * 2)).verdict is verdict


@pytest.mark.parametrize(("one", "several"), [(A, B), (B, A)])
def test_one_seed_within_the_spread_of_the_others_decides_nothing(one, several) -> None:
    """t with three degrees of freedom: 3.18 times 0.01 * sqrt(1 + 1 / 4) is 0.036."""
    seeds = [0.88, 0.90, 0.90, 0.90]
    near, far = (measured(**{one["method"]: [value], several["method"]: seeds}) for value in (0.929, 0.933))
    assert higher("accuracy", one, several, ".")(near).verdict is Verdict.UNDECIDED
    assert higher("accuracy", one, several, ".")(far).verdict is Verdict.ONE_YES
    assert higher("accuracy", several, one, ".")(far).verdict is Verdict.ONE_NO
    assert higher("accuracy", one, several, ".")(near).words.endswith(
        "a standard error of 1.12, assuming equal spread."
    )


def test_equal_numbers_are_neither_higher_nor_lower() -> None:
    same = measured(A=[0.9, 0.9], B=[0.9, 0.9])
    assert [view("accuracy", A, B, ".")(same).verdict for view in (higher, lower)] == [Verdict.FAILS] * 2
