"""The translation experiments: the same settings for one network and for members, and the paper's constants."""

from dataclasses import replace

import pytest

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.experiments.translators import BATCH, DROPOUT, SINGLE, claims, of, until
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run, plain
from batchensemble.lab.report import Evidence, Place, Verdict
from batchensemble.lab.studies.translation import Members, Recipe, Settings
from batchensemble.lab.studies.translation.corpora import CORPORA

TRANSLATIONS = [EXPERIMENTS["translation-ende"], EXPERIMENTS["translation-enfr"]]


def settings(experiment, scale, **labels):
    return [
        Settings.of(case.run.settings)
        for case in experiment.cases(scale)
        if labels.items() <= case.labels.items() and case.run.seed == 0
    ]


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
@pytest.mark.parametrize("experiment", TRANSLATIONS, ids=lambda one: one.id)
def test_methods_differ_in_nothing_else(experiment, scale):
    for case in experiment.cases(scale):
        assert plain(Settings.of(case.run.settings)) == case.run.settings
    singles = settings(experiment, scale, method=SINGLE)
    for single, batch in zip(singles, settings(experiment, scale, method=BATCH), strict=True):
        assert batch.recipe == replace(single.recipe, members=Members())
        assert single.recipe.data in CORPORA
    for dropout in settings(experiment, scale, method=DROPOUT):
        assert dropout.recipe in [single.recipe for single in singles], "it asks a network that is trained anyway"
        assert dropout.rates == (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)


def test_the_papers_recipes():
    (base,) = settings(TRANSLATIONS[0], "paper", method=SINGLE, model="base")
    (big,) = settings(TRANSLATIONS[0], "paper", method=SINGLE, model="big")
    (french,) = settings(TRANSLATIONS[1], "paper", method=SINGLE, model="big")
    assert (base.recipe.steps, base.recipe.dropout) == (100_000, 0.1)
    assert (big.recipe.steps, big.recipe.dropout, big.recipe.tokens) == (180_000, 0.3, 30_000)
    assert french.recipe == replace(big.recipe, data="wmt14-fr", dropout=0.1)
    assert {one.samples for one in settings(TRANSLATIONS[0], "paper", method=DROPOUT)} == {16}


def test_a_race_stops_everybody_at_the_same_perplexity():
    race = until(TRANSLATIONS[0], 5.0)
    for scale in race.scales:
        found = [Settings.of(case.run.settings) for case in race.cases(scale)]
        assert {one.recipe.until_perplexity for one in found} == {5.0}
        assert not any(one.samples for one in found)
    assert not {case.run for case in race.cases("smoke")} & {case.run for case in TRANSLATIONS[0].cases("smoke")}
    with pytest.raises(ValueError, match="cifar-accuracy trains no translators"):
        until(EXPERIMENTS["cifar-accuracy"], 5.0)


def test_the_defaults_are_the_papers_big_transformer():
    assert Recipe() == settings(TRANSLATIONS[0], "paper", method=SINGLE, model="big")[0].recipe


@pytest.mark.parametrize("perplexity", [1.0, -3.0, float("nan"), float("inf")])
def test_a_race_has_a_goal_that_can_be_reached(perplexity):
    with pytest.raises(ValueError, match="lies above 1"):
        until(TRANSLATIONS[0], perplexity)


def test_what_is_worse_is_no_better_either():
    """The two claims of that form, with numbers far on the other side."""
    numbers = {SINGLE: (5.0, 38.0), BATCH: (5.0, 30.0), DROPOUT: (9.0, 30.0)}
    places = [
        Place(
            of("Multi30k", "small", method),
            seed,
            Record(
                Run("translation", {"method": method}, "small", seed),
                {"perplexity": perplexity, "bleu": bleu},
                Provenance("a laptop"),
            ),
        )
        for method, (perplexity, bleu) in numbers.items()
        for seed in range(2)
    ]
    checks = [view(Evidence("translation-ende", "small", tuple(places))) for view in claims("Multi30k", "small")]
    verdicts = [check.verdict for check in checks if "no better" in check.claim]
    assert verdicts == [Verdict.HOLDS, Verdict.HOLDS]
