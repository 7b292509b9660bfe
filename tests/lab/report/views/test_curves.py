"""Curves: colours, dashes, bands and axes."""

import numpy as np
import pytest
from canvases import canvas_of
from fake_records import evidence, place

from batchensemble.lab.report import NotMeasured, Place, Quantity
from batchensemble.lab.report.views import (
    over_label,
    over_steps,
    training_curves,
)
from batchensemble.lab.report.views.lines import GAP


def test_no_two_curves_of_one_figure_look_alike() -> None:
    names = ("NaiveEnsemble4", "NaiveEnsemble8", "BatchEnsemble4", "BatchEnsemble8", "Dropout", "LinFullPost", "RMS")
    names += ("AlphaDiv", "BBB", "MultitaskGP", "NeuralLinear", "ParamNoise", "Uniform")
    found = evidence(
        place({"curve": list(range(start, start + 40))}, {"method": name}) for start, name in enumerate(names)
    )
    (panel,) = canvas_of(over_steps("curve")(found)).axes
    looks = {(line.get_color(), repr(line._dash_pattern)) for line in panel.lines}
    assert len(looks) == len(names)


def test_a_curve_that_lies_on_another_is_dashed() -> None:
    curves = {"Single": [3.0, 2.0, 1.0], "Naive ensemble": [3.0, 2.0, 1.0], "BatchEnsemble": [3.0, 2.5, 2.0]}
    found = evidence(place({"curve": values}, {"method": name}) for name, values in curves.items())
    (panel,) = canvas_of(over_steps("curve")(found)).axes
    assert [line.get_linestyle() for line in panel.lines] == ["-", "--", "-"]


def test_a_curve_looks_the_same_in_every_panel_and_in_the_legend() -> None:
    """In one of the panels it lies on another curve; in one the first method is missing."""
    curves = {
        ("Single", "mushroom"): [3.0, 2.0, 1.0],
        ("BatchEnsemble", "mushroom"): [3.0, 2.0, 1.0],
        ("Single", "jester"): [3.0, 2.0, 1.0],
        ("BatchEnsemble", "jester"): [4.0, 3.0, 2.0],
        ("BatchEnsemble", "wheel"): [4.0, 3.0, 2.0],
        ("Another", "wheel"): [5.0, 3.0, 2.0],
    }
    found = evidence(place({"curve": y}, {"method": method, "data": data}) for (method, data), y in curves.items())
    canvas = canvas_of(over_steps("curve")(found))
    names = [text.get_text() for text in canvas.legends[0].texts]
    legend = dict(zip(names, map(look_of, canvas.legends[0].get_lines()), strict=True))
    assert legend["BatchEnsemble"][1] == "--"
    for panel in canvas.axes:
        for line in panel.lines:
            assert look_of(line) == legend[line.get_label()]


def look_of(line) -> tuple[object, ...]:
    return line.get_color(), line.get_linestyle(), repr(line._dash_pattern), line.get_marker()


def test_curves_that_can_be_told_apart_are_not_dashed() -> None:
    """They differ by little of their values, and by much of the panel."""
    curves = {"Single": [0.996, 0.997, 0.998], "Naive ensemble": [0.9962, 0.9972, 0.9983]}
    found = evidence(place({"curve": values}, {"method": name}) for name, values in curves.items())
    (panel,) = canvas_of(over_steps("curve")(found)).axes
    assert [line.get_linestyle() for line in panel.lines] == ["-", "-"]


def test_curves_beside_those_that_matter_are_grey_and_named_at_their_ends() -> None:
    ends = {"Ours": 1.0, "RMS": 50.0, "BBB": 50.5, "Uniform": 100.0}
    found = evidence(place({"curve": [0.0, end]}, {"method": name}) for name, end in ends.items())
    canvas = canvas_of(over_steps("curve", highlight=("Ours",))(found))
    (panel,) = canvas.axes
    assert [text.get_text() for text in canvas.legends[0].texts] == ["Ours"]
    names = {text.get_text(): text.get_position()[1] for text in panel.texts}
    assert list(names) == ["RMS", "BBB", "Uniform"]
    assert names["BBB"] - names["RMS"] == pytest.approx(GAP)


@pytest.mark.parametrize(("better", "scale"), [("lower", "log"), ("higher", "linear")])
def test_curves_that_end_far_apart_get_a_logarithmic_axis_and_the_caption_says_so(better, scale) -> None:
    ends = {("Uniform", "mushroom"): 100, ("Ours", "mushroom"): 7, ("Uniform", "jester"): 100, ("Ours", "jester"): 80}
    found = evidence(
        place({"regret": [0.0, end / 2, end]}, {"method": method, "problem": problem})
        for (method, problem), end in ends.items()
    )
    figure = over_steps(Quantity("regret", "regret", better=better))(found)
    mushroom, jester = canvas_of(figure).axes
    assert (mushroom.get_yscale(), jester.get_yscale()) == (scale, "linear")
    assert ("logarithmic axis" in figure.caption) == (scale == "log")
    assert (mushroom.get_ylabel().endswith("(log)"), jester.get_ylabel()) == (scale == "log", "regret")


def test_bands_are_deviations_or_errors_and_gaps_stay_gaps() -> None:
    found = evidence(
        place({"curve": values}, {"method": "A"}, seed) for seed, values in enumerate([[1.0, 2.0], [3.0, 6.0, 7.0]])
    )
    for band, width in (("deviation", np.sqrt(2)), ("error", 1.0)):
        (panel,) = canvas_of(over_steps("curve", band=band)(found)).axes
        assert panel.lines[0].get_ydata() == pytest.approx([2.0, 4.0, 7.0])
        edge = panel.collections[0].get_paths()[0].vertices
        assert edge[edge[:, 0] == 1.0][:, 1].max() == pytest.approx(2.0 + width)


def test_trials_that_ran_together_are_seeds_too() -> None:
    found = evidence([place({"curve": [[1.0, 1.0], [3.0, 5.0]]}, {"method": "A"})])
    (panel,) = canvas_of(over_steps("curve")(found)).axes
    assert panel.lines[0].get_ydata() == pytest.approx([2.0, 3.0])


def test_training_curves_are_drawn_over_epochs_counted_from_one() -> None:
    log = [{"epoch": epoch, "loss": 1 / (epoch + 1)} for epoch in range(3)]
    figure = training_curves("loss")(evidence([place({"log": [log]}, {"method": "Single"})]))
    assert figure.alt == "Loss against epoch for Single."
    (panel,) = canvas_of(figure).axes
    assert panel.lines[0].get_xdata() == pytest.approx([1, 2, 3])
    assert panel.lines[0].get_ydata() == pytest.approx([1, 1 / 2, 1 / 3])


def test_a_point_alone_is_no_curve() -> None:
    places = [place({"accuracy": 0.9}, {"method": "A", "share": "100 %"}), Place({"method": "A", "share": "50 %"}, 0)]
    with pytest.raises(NotMeasured, match="no method has accuracy at more than one share"):
        over_label("share", "accuracy")(evidence(places))
