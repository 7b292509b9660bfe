"""Every figure is drawn, the same every time, and shows the numbers of its records."""

from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from canvases import canvas_of
from fake_records import evidence, place

from batchensemble.lab.records import Published
from batchensemble.lab.report import Evidence, NotMeasured, Place, Quantity
from batchensemble.lab.report.style import INK, RC
from batchensemble.lab.report.views import (
    bars,
    by_severity,
    cost_by_size,
    diversity_against_accuracy,
    entropy_histograms,
    heatmaps,
    over_label,
    over_steps,
    prediction_maps,
    recipes,
    reliability_diagrams,
    training_curves,
)
from batchensemble.lab.report.views.panels import grid

SEEN = Quantity("seen_accuracy", "accuracy on tasks so far", "%", 100.0)
VIEWS = {
    "severity": (by_severity("ece", "accuracy"), "shift_evidence"),
    "diversity": (diversity_against_accuracy(), "diversity_evidence"),
    "entropy": (entropy_histograms(), "unseen_evidence"),
    "drawn": (prediction_maps("drawn"), "pictures_evidence"),
    "telling": (prediction_maps("telling"), "pictures_evidence"),
    "cost": (cost_by_size({"relative_seconds": 4 / 3, "relative_parameters": 1.1}), "cost_evidence"),
    "recipes": (recipes(), "recipes_evidence"),
    "reliability": (reliability_diagrams(), "logits_evidence"),
    "bars": (bars("average_accuracy", "relative_memory"), "lifelong_evidence"),
    "seen": (over_steps(SEEN, xlabel="tasks"), "lifelong_evidence"),
    "matrices": (heatmaps(Quantity("accuracy_matrix", "accuracy", "%", 100.0)), "lifelong_evidence"),
    "regret": (over_steps("regret_curve", x="steps", band="error"), "bandit_evidence"),
    "training": (training_curves("cross_entropy", "accuracy"), "log_evidence"),
    "growth": (over_label("share", "accuracy", "disagreement"), "diversity_evidence"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_figure_is_drawn_and_says_its_circumstances(name, request) -> None:
    view, fixture = VIEWS[name]
    figure = view(request.getfixturevalue(fixture))
    drawing = figure.render()
    assert drawing.png.startswith(b"\x89PNG")
    assert ElementTree.fromstring(drawing.svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert "Small scale" in figure.caption
    assert "NVIDIA H200" in figure.caption
    assert figure.title
    assert figure.alt[0] == figure.alt[0].upper()


@pytest.mark.parametrize("name", VIEWS)
def test_without_records_there_is_nothing_to_draw(name) -> None:
    with pytest.raises(NotMeasured):
        VIEWS[name][0](Evidence("an-experiment", "small", ()))


def test_the_same_evidence_gives_the_same_bytes_and_no_date(lifelong_evidence) -> None:
    view = over_steps(SEEN)
    first, second = view(lifelong_evidence).render(), view(lifelong_evidence).render()
    assert first == second
    assert b"<dc:date>" not in first.svg


def test_settings_of_the_user_do_not_change_a_figure(lifelong_evidence) -> None:
    import matplotlib

    figure = over_steps(SEEN)(lifelong_evidence)
    usual = figure.render()
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert figure.render() == usual


def test_ink_turns_light_on_dark_pages(lifelong_evidence) -> None:
    svg = over_steps(SEEN)(lifelong_evidence).render().svg.decode()
    assert "prefers-color-scheme: dark" in svg
    assert f'[style*="fill: {INK}"]' in svg
    assert f'style="fill: {INK}"' in svg  # and there is ink that the rule applies to


def test_boxes_span_the_corruptions_mean_over_seeds() -> None:
    rows = [[("fog", 0.8), ("snow", 0.6), ("frost", 0.1)], [("fog", 0.6), ("snow", 0.4), ("frost", 0.3)]]
    found = evidence(
        place(
            {"shift": [{"corruption": kind, "severity": 1, "accuracy": value} for kind, value in numbers]},
            {"method": "Single"},
            seed,
        )
        for seed, numbers in enumerate(rows)
    )
    (panel,) = canvas_of(by_severity("accuracy")(found)).axes
    heights = [y for line in panel.lines for y in np.atleast_1d(line.get_ydata())]
    assert min(heights) == pytest.approx(20)  # frost
    assert max(heights) == pytest.approx(70)  # fog
    assert panel.lines[-1].get_ydata() == pytest.approx([50, 50])  # the median: snow


def test_only_methods_that_are_drawn_are_described(shift_evidence) -> None:
    absent = Place({"method": "BatchEnsemble, norm per member"}, 0)
    alt = by_severity("ece")(replace(shift_evidence, places=(*shift_evidence.places, absent))).alt
    assert "Single; " in alt
    assert "norm per member" not in alt


def test_every_member_but_the_first_is_a_point(diversity_evidence) -> None:
    """The first is at no distance from itself; its points would lie on one another."""
    axes = canvas_of(diversity_against_accuracy()(diversity_evidence)).axes
    assert [panel.get_title(loc="left") or panel.get_title() for panel in axes] == ["100 %", "50 %", "20 %", "10 %"]
    assert [len(points.get_offsets()) for points in axes[0].collections] == [7, 3, 3]
    assert all(distance > 0 for points in axes[0].collections for _, distance in points.get_offsets())


def test_a_network_without_members_is_not_in_the_legend(diversity_evidence) -> None:
    single = place({"member_accuracy": [0.9], "base_disagreement": [0.0]}, {"method": "Single", "share": "100 %"})
    canvas = canvas_of(diversity_against_accuracy()(evidence([single, *diversity_evidence.places])))
    names = [text.get_text() for text in canvas.legends[0].get_texts()]
    assert names == ["MC-dropout", "BatchEnsemble", "Naive ensemble"]


def test_the_only_share_that_was_asked_for_needs_no_title(diversity_evidence) -> None:
    (panel,) = canvas_of(diversity_against_accuracy()(diversity_evidence.where(share="100 %"))).axes
    assert panel.get_title() == panel.get_title(loc="left") == ""


def test_a_share_that_was_not_run_has_no_panel(diversity_evidence) -> None:
    run = [one for one in diversity_evidence.places if one.labels["share"] in ("100 %", "20 %")]
    asked = [Place(one.labels, one.seed) for one in diversity_evidence.places if one not in run]
    axes = canvas_of(diversity_against_accuracy()(evidence([*run, *asked]))).axes
    assert [panel.get_title() for panel in axes if panel.axison] == ["100 %", "20 %"]


def test_the_axis_reaches_shares_that_were_not_run(diversity_evidence) -> None:
    places = [
        one if one.labels["share"] in ("100 %", "50 %") else Place(one.labels, one.seed)
        for one in diversity_evidence.places
    ]
    (panel,) = canvas_of(over_label("share", "accuracy")(evidence(places))).axes
    low, high = panel.get_xlim()
    assert -10 < low < 10
    assert 100 < high < 110
    assert panel.get_ylim()[0] > 80  # the accuracies' own


def test_telling_pictures_are_those_the_single_network_gets_wrong_surest_first(pictures_evidence) -> None:
    canvas = canvas_of(prediction_maps("telling", count=9)(pictures_evidence))
    maps = [panel for panel in canvas.axes if panel.images and panel.get_xticks().size == 10]
    assert len(maps) == 8  # four of each method
    sureness = []
    for panel in maps:
        probs = np.asarray(panel.images[0].get_array())
        right = round(panel.patches[0].get_x() + 0.5)
        assert probs[0].argmax() == right != probs[-1].argmax()
        assert probs.sum(-1) == pytest.approx(1, abs=1e-6)
        sureness.append(probs[-1].max())
    assert sureness[:4] == sorted(sureness[:4], reverse=True)


def test_a_picture_that_is_drawn_and_telling_is_shown_once(pictures_evidence) -> None:
    (first, *_) = pictures_evidence.results
    twice = {**first.record.arrays, "rows": np.where(np.arange(12) == 11, 10, np.arange(12))}
    canvas = canvas_of(prediction_maps("telling")(evidence([place({}, first.labels, arrays=twice)])))
    assert len([panel for panel in canvas.axes if panel.get_xticks().size == 10]) == 3


def test_of_many_classes_the_right_one_is_always_shown(rng) -> None:
    logits = rng.standard_normal((4, 1, 100))
    logits[..., 7] = -9
    arrays = {
        "pictures": rng.integers(255, size=(1, 1, 8, 8), dtype=np.uint8),
        "labels": np.array([7]),
        "logits": logits,
        "single": rng.standard_normal((1, 100)),
        "rows": np.array([3]),
    }
    canvas = canvas_of(prediction_maps()(evidence([place({}, {"method": "A"}, arrays=arrays)])))
    names = [label.get_text() for label in canvas.axes[1].get_xticklabels()]
    assert len(names) == 10
    assert "7" in names


def test_reliability_is_that_of_the_mean_prediction(logits_evidence) -> None:
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error

    arrays = logits_evidence.where(method="BatchEnsemble").results[0].record.arrays
    probs = torch.from_numpy(arrays["logits"].astype(np.float64)).softmax(-1).mean(0)
    labels = torch.from_numpy(arrays["labels"])
    above, below = canvas_of(reliability_diagrams()(logits_evidence.where(method="BatchEnsemble"))).axes
    blue, orange, green = above.containers
    gaps = [over.get_height() + under.get_height() for over, under in zip(orange, green, strict=True)]
    shares = [bar.get_height() for bar in below.containers[0]]
    error = multiclass_calibration_error(probs, labels, 10, n_bins=15).item()
    assert np.dot(gaps, shares) == pytest.approx(error, abs=1e-6)
    assert len(blue) == len(shares)


@pytest.mark.parametrize(
    ("view", "fixture"), [(reliability_diagrams(), "logits_evidence"), (entropy_histograms(), "unseen_evidence")]
)
def test_what_was_measured_but_is_not_drawn_is_named(view, fixture, request) -> None:
    """No run of BatchEnsemble has kept its predictions, and one of two networks has not; dropout was not run."""
    run = [one for one in request.getfixturevalue(fixture).places if one.labels["method"] != "MC-dropout"]
    lost = [
        replace(one, record=replace(one.record, arrays={})) if one.labels["method"] == "BatchEnsemble" else one
        for one in run
    ]
    again = place({"ece": 0.1}, {"method": "Single"}, seed=9)
    figure = view(evidence([*lost, again, Place({"method": "MC-dropout"}, 0)]))
    singles = sum(one.labels["method"] == "Single" for one in [*lost, again])
    assert f"not kept: Single (1 of {singles} runs); BatchEnsemble. Small scale" in figure.caption
    assert "1 of" in figure.caption.rpartition(" · ")[2]  # MC-dropout, which is missing
    assert figure.alt.endswith(" Single; Naive ensemble.")
    assert "not kept" not in view(evidence(run)).caption


@pytest.mark.parametrize("count", [10, 28])
def test_numbers_of_recipes_lie_on_no_other_number_or_mark(count, rng) -> None:
    drawn = zip(rng.normal(0.7, 0.03, count), rng.normal(0.2, 0.03, count), strict=True)
    found = evidence(
        place({"member_accuracy": [m], "disagreement": d, "accuracy": m + d / 9}, {"recipe": f"recipe {number}"})
        for number, (m, d) in enumerate(drawn)
    )
    canvas = canvas_of(recipes()(found))
    canvas.canvas.draw()
    panel, key = canvas.axes
    numbers = [text.get_window_extent() for text in panel.texts if text.get_text().isdecimal()]
    assert len(numbers) >= count
    assert not any(one.overlaps(other) for one, other in combinations(numbers[:count], 2))
    ensembles = [float(text.get_text()) for text in key.texts if "." in text.get_text()]
    assert ensembles == sorted(ensembles, reverse=True)


def test_lines_of_equal_accuracy_are_those_of_the_plane(rng) -> None:
    members, apart = rng.uniform(0.6, 0.8, 12), rng.uniform(0.05, 0.3, 12)
    found = evidence(
        place(
            {"member_accuracy": [m, m], "disagreement": d, "accuracy": 0.1 + 0.9 * m + 0.2 * d},
            {"recipe": f"recipe {number}"},
        )
        for number, (m, d) in enumerate(zip(members, apart, strict=True))
    )
    figure = recipes()(found)
    assert "standard deviation of 0.00 points" in figure.caption
    panel = canvas_of(figure).axes[0]
    (x0, x1), (y0, y1) = panel.lines[0].get_xdata(), panel.lines[0].get_ydata()
    assert (y1 - y0) / (x1 - x0) == pytest.approx(-0.2 / 0.9)


def test_the_papers_claims_are_rings_on_the_cost_figure(cost_evidence) -> None:
    view = cost_by_size({"relative_parameters": 1.1})
    time, memory, parameters = canvas_of(view(replace(cost_evidence, scale="paper"))).axes
    rings = [line for line in parameters.lines if line.get_label() == "the paper's claim"]
    assert [(ring.get_xdata().item(), ring.get_ydata().item()) for ring in rings] == [(4, 1.1)]
    for panel in (time, memory):
        assert "the paper's claim" not in [line.get_label() for line in panel.lines]


def test_without_a_gpu_there_is_no_panel_of_memory() -> None:
    rows = [{"kind": "BatchEnsemble", "members": size, "relative_seconds": size, "memory": 0.0} for size in (1, 4)]
    assert len(canvas_of(cost_by_size({})(evidence([place({"cost": rows}, {})]))).axes) == 1


def test_what_nobody_measured_gets_no_panel(lifelong_evidence) -> None:
    found = evidence([*lifelong_evidence.places, Place({"method": "RCL"}, 0)])
    assert len(canvas_of(bars("forgetting", "training_seconds")(found)).axes) == 1
    with pytest.raises(NotMeasured, match="no run has training time"):
        bars("training_seconds")(found)


def test_bins_of_few_pictures_are_faded() -> None:
    logits = np.zeros((1, 105, 2))
    logits[:, :5, 0], logits[:, 5:, 0] = 0.5, 5.0  # five pictures that it is not sure of
    arrays = {"logits": logits, "labels": np.zeros(105, dtype=np.int64)}
    above, _ = canvas_of(reliability_diagrams()(evidence([place({}, {"method": "A"}, arrays=arrays)]))).axes
    few, many = (bar.get_facecolor()[3] for bar in above.containers[0])
    assert (few, many) == (0.25, 1.0)


def test_a_missing_bar_says_so(lifelong_evidence) -> None:
    found = evidence([*lifelong_evidence.places, Place({"method": "RCL"}, 0)])
    (panel,) = canvas_of(bars("forgetting")(found)).axes
    (missing,) = [text for text in panel.texts if text.get_text() == "missing"]
    assert (missing.get_position()[1], missing.get_verticalalignment()) == (4, "center")  # beside its tick
    assert panel.get_ylim() == (4.5, -0.5)  # which is on the axis
    assert len(panel.containers) >= 4


@pytest.mark.parametrize(
    ("view", "fixture"),
    [
        (bars("relative_memory"), "lifelong_evidence"),
        (over_label("share", "accuracy"), "diversity_evidence"),
        (cost_by_size({"relative_seconds": 4 / 3}), "cost_evidence"),
    ],
)
def test_rings_of_the_paper_are_drawn_at_its_scale_alone(view, fixture, request) -> None:
    found = request.getfixturevalue(fixture)
    numbers = [*found.published, Published({"method": "BatchEnsemble", "share": "20 %"}, "accuracy", 0.86)]
    for scale, drawn in (("paper", True), ("small", False)):
        axes = canvas_of(view(replace(found, scale=scale, published=tuple(numbers)))).axes
        marks = [line for panel in axes for line in panel.lines if line.get_fillstyle() == "none"]
        assert bool(marks) == drawn


def test_the_papers_rings_cover_no_number() -> None:
    places = [place({"cost": value}, {"method": name}, scale="paper") for name, value in (("A", 1.0), ("B", 9.2))]
    numbers = [Published({"method": "A"}, "cost", 1.15), Published({"method": "B"}, "cost", 9.9)]
    canvas = canvas_of(bars("cost")(evidence(places, numbers, "paper")))
    canvas.canvas.draw()
    (panel,) = canvas.axes
    rings = [line.get_window_extent() for line in panel.lines if line.get_fillstyle() == "none"]
    assert len(rings) == 2
    assert not any(ring.overlaps(text.get_window_extent()) for ring in rings for text in panel.texts)


@pytest.mark.parametrize(
    ("view", "panels"),
    [(by_severity("accuracy"), 2), (over_steps("curve"), 2), (training_curves("loss"), 2), (bars("nll"), 2)],
)
def test_data_sets_are_drawn_apart_and_never_mixed(view, panels) -> None:
    metrics = {
        "shift": [{"corruption": kind, "severity": 1, "accuracy": 0.5} for kind in ("fog", "snow")],
        "curve": [1.0, 2.0],
        "log": [[{"epoch": 0, "loss": 1.0}]],
        "nll": 1.0,
    }
    places = [place(metrics, {"method": "Single", "data": data}) for data in ("CIFAR-10", "CIFAR-100")]
    assert len(canvas_of(view(evidence(places))).axes) == panels


def test_predictions_over_ten_and_a_hundred_classes_get_diagrams_of_their_own(rng) -> None:
    places = [
        place(
            {"ece": 0.1},
            {"method": "Single", "data": f"{classes} classes"},
            arrays={"logits": rng.standard_normal((1, 50, classes)), "labels": rng.integers(classes, size=50)},
        )
        for classes in (10, 100)
    ]
    axes = canvas_of(reliability_diagrams()(evidence(places))).axes
    titles = [panel.get_title().splitlines()[0] for panel in axes if panel.get_title()]
    assert titles == ["Single, 10 classes", "Single, 100 classes"]


def test_points_of_different_data_are_refused(diversity_evidence) -> None:
    with pytest.raises(ValueError, match="they differ in share"):
        diversity_against_accuracy(panels="data")(diversity_evidence)


def test_a_legend_of_long_names_is_not_cut_off():
    names = [f"BatchEnsemble, repeated batch, norm per member {number}" for number in range(5)]
    figure = over_steps("loss")(evidence(place({"loss": [2.0, 1.0]}, {"method": name}) for name in names))
    canvas = canvas_of(figure)
    legend = canvas.legends[0]
    assert len(canvas.legends) == 1
    assert legend.get_window_extent().width <= canvas.bbox.width


def test_every_column_of_panels_that_share_an_axis_has_its_numbers():
    from matplotlib.figure import Figure

    panels = grid(Figure(), 5, across=2, sharex=True)
    labelled = [panel.xaxis.get_tick_params()["labelbottom"] for panel in panels]
    assert labelled == [False, False, False, True, True]


def test_costs_beyond_the_number_of_members_have_ticks():
    rows = [{"kind": "BatchEnsemble", "members": n, "relative_seconds": 3.0 * n} for n in (1, 2, 4, 8, 16)]
    figure = cost_by_size({})(evidence([place({"cost": rows}, {"network": "ResNet"})]))
    panel = canvas_of(figure).axes[0]
    assert {"1", "16", "32"} <= {tick.get_text() for tick in panel.get_yticklabels()}
    assert panel.get_xticks().tolist() == [1, 2, 4, 8, 16]


def test_a_long_name_does_not_run_into_the_next_panel() -> None:
    arrays = {"entropy_known": np.zeros(9), "entropy_unknown": np.ones(9)}
    names = ("BatchEnsemble, repeated batch, norm per member", "Naive ensemble")
    found = evidence(place({"auroc": 0.9}, {"method": name}, arrays=arrays) for name in names)
    with mpl.rc_context(RC):
        canvas = canvas_of(entropy_histograms()(found))
        canvas.draw_without_rendering()
        (title,) = (text for text in canvas.axes[0].findobj(mpl.text.Text) if text.get_text().startswith("BatchE"))
        assert " ".join(title.get_text().split()) == names[0]
        assert title.get_window_extent().x1 < canvas.axes[1].get_window_extent().x0
