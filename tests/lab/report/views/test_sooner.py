"""The race to where another training ends."""

import pytest
from fake_records import evidence, place

from batchensemble.lab.report.check import Verdict
from batchensemble.lab.report.evidence import NotMeasured
from batchensemble.lab.report.views import over_steps, sooner

FAST, SLOW = {"method": "fast"}, {"method": "slow"}


def measured(fast, slow=((4.0, 3.0, 2.5, 2.0), (4.2, 3.0, 2.5, 2.2))):
    return evidence(
        place(
            {"loss": list(losses), "steps": [10, 20, 30, 40], "seconds": [1.0 + seed, 2.0 + seed, 3.0, 4.0]},
            {"method": method},
            seed,
        )
        for method, seeds in {"fast": fast, "slow": slow}.items()
        for seed, losses in enumerate(seeds)
    )


@pytest.mark.parametrize(
    ("losses", "verdict", "words"),
    [
        ((3.0, 2.0, 1.0, 1.0), Verdict.HOLDS, "took 20: 2.00 times as fast"),
        ((4.0, 3.0, 2.1, 1.0), Verdict.FAILS, "took 30: 1.33 times as fast"),
        ((4.0, 3.0, 3.0, 2.3), Verdict.FAILS, "it does not get"),
    ],
)
def test_steps_to_the_lowest_mean_of_the_other(losses, verdict, words):
    check = sooner("loss", FAST, SLOW, "It is faster.", times=1.5)(measured([losses, losses]))
    assert check.verdict is verdict
    assert check.words.startswith("To the 2.100 that slow reaches after 40 steps, it ")
    assert words in check.words


def test_seeds_that_disagree_decide_nothing():
    """The means are 2 times as fast, the worse seed alone is not 1.5 times as fast as the better of the others."""
    found = measured([(3.0, 1.9, 1.0, 1.0), (3.0, 2.2, 2.1, 2.05)])
    assert sooner("loss", FAST, SLOW, "It is faster.", times=1.5)(found).verdict is Verdict.UNDECIDED


def test_one_seed_says_so():
    found = measured([(3.0, 2.0, 1.0, 1.0)])
    assert sooner("loss", FAST, SLOW, "It is faster.")(found).verdict is Verdict.ONE_YES
    assert sooner("loss", FAST, SLOW, "It is faster.", times=9)(found).verdict is Verdict.ONE_NO


def test_time_is_the_mean_over_seeds():
    check = sooner("loss", FAST, SLOW, "It is faster.", x="seconds")(measured([(3.0, 2.0, 1.0, 1.0)] * 2))
    assert "1.60 times as fast" in check.words


def test_what_was_not_measured_is_said():
    check = sooner("loss", FAST, {"method": "nobody"}, "It is faster.")(measured([(1.0,) * 4]))
    assert (check.verdict, check.words) == (Verdict.OPEN, "No loss of nobody.")


def test_without_times_there_is_nothing_to_say_of_them():
    untimed = evidence(
        place({"loss": [2.0, 1.0], "steps": [10, 20]}, labels, seed) for labels in (FAST, SLOW) for seed in (0, 1)
    )
    assert sooner("loss", FAST, SLOW, "It is faster.", x="seconds")(untimed).verdict is Verdict.OPEN
    assert over_steps("loss", x="steps")(untimed).name == "curves"
    with pytest.raises(NotMeasured, match="no run has loss by seconds of training"):
        over_steps("loss", x="seconds", xlabel="seconds of training", aligned=True)(untimed)


def test_curves_over_time_are_matched_point_by_point():
    figure = over_steps("loss", x="seconds", xlabel="seconds", aligned=True)(measured([(3.0, 2.0, 1.0, 1.0)] * 2))
    from matplotlib.figure import Figure

    canvas = Figure()
    figure.draw(canvas)
    for line, expected in zip(canvas.axes[0].get_lines(), ([3.0, 2.0, 1.0, 1.0], [4.1, 3.0, 2.5, 2.1]), strict=True):
        assert line.get_xdata().tolist() == [1.5, 2.5, 3.0, 4.0]
        assert line.get_ydata().tolist() == pytest.approx(expected)
