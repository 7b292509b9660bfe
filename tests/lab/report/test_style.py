"""Colours and markers: a method's own in every figure."""

import pytest

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.report.style import BLUE, GREY, colours, markers


@pytest.mark.parametrize("experiment", ["cifar-accuracy", "cifar-corruption", "cifar-unseen", "cifar-partial"])
def test_methods_of_an_experiment_have_colours_of_their_own_with_and_without_the_others(experiment: str) -> None:
    methods = [row.labels["method"] for row in EXPERIMENTS[experiment].scales["paper"].rows]
    found = colours(methods)
    assert len(set(found.values())) == len(found)
    assert all(colours([method]) == {method: colour} for method, colour in found.items())


def test_methods_keep_their_colours_and_variants_get_others() -> None:
    assert colours(["BatchEnsemble"])["BatchEnsemble"] == colours(["Naive", "BatchEnsemble"])["BatchEnsemble"] == BLUE
    many = colours(["BatchEnsemble, repeated batch", "BatchEnsemble", "Single", "BatchEnsemble + dropout-8"])
    assert (many["BatchEnsemble"], many["Single"]) == (BLUE, GREY)
    assert len(set(many.values())) == 4


def test_methods_keep_their_markers_whoever_is_beside_them() -> None:
    few, many = markers(["BatchEnsemble", "PNN"]), markers(["Vanilla", "EWC", "PNN", "BatchEnsemble", "BN-tuned"])
    assert (few["BatchEnsemble"], few["PNN"]) == (many["BatchEnsemble"], many["PNN"])
    assert len(set(many.values())) == 5
    assert colours(["PNN", "DEN"])["PNN"] == colours(["BatchEnsemble", "PNN", "Separate networks"])["PNN"]
