"""How numbers are written."""

import pytest

from batchensemble.lab.report.evidence import Summary
from batchensemble.lab.report.quantity import Quantity, quantity


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.00123, "0.00123"), (2.136, "2.14"), (21.36, "21.4"), (999.6, "1,000"), (-0.5, "-0.500")],
)
def test_three_significant_digits_where_nothing_is_said(value, text) -> None:
    assert quantity("something_else").text(value) == text


def test_mean_and_spread_have_the_same_digits() -> None:
    shown = quantity("accuracy")
    assert shown.summary(Summary(0.95, 0.00126, 3)) == "95.00 ± 0.13"
    assert shown.spread_text(Summary(0.95, 0.00126, 3)) == "0.13"
    assert shown.spread_text(Summary(0.95, None, 1)) == ""


def test_what_is_the_same_with_every_seed_has_no_spread() -> None:
    assert quantity("passes").summary(Summary(4.0, 0.0, 3)) == "4"
    assert quantity("passes").spread_text(Summary(4.0, 0.0, 3)) == ""


def test_a_quantity_of_your_own_is_taken_as_it_is() -> None:
    own = Quantity("milliseconds", "latency", "ms", 1000.0, 1)
    assert quantity(own) is own
    assert (own.heading, own.text(0.0123)) == ("latency (ms)", "12.3")


@pytest.mark.parametrize(("p", "text"), [(0.0, "0.000"), (2e-9, "< 0.001"), (0.00104, "0.001"), (0.5, "0.500")])
def test_a_small_p_value_is_not_zero(p, text) -> None:
    assert Quantity("p", "p", digits=3, least=0.001).text(p) == text
