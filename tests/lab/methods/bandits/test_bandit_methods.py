"""What every algorithm promises."""

import json

import numpy as np
import pytest
import torch

from batchensemble.lab.data.bandits import load_problem
from batchensemble.lab.methods.bandits import (
    METHODS,
    AlphaDivergence,
    BatchEnsemble,
    BayesByBackprop,
    Dropout,
    GaussianProcess,
    Greedy,
    Linear,
    Naive,
    NetworkTraining,
    NeuralLinear,
    ParameterNoise,
    Uniform,
    method_from,
    settings_of,
)
from batchensemble.lab.studies.bandits import measure, play

QUICK = NetworkTraining(steps=20, batch=64, every=20)
ALL = {
    "uniform": Uniform(),
    "greedy": Greedy(QUICK),
    "dropout": Dropout(training=QUICK),
    "naive": Naive(3, training=QUICK),
    "bootstrap": Naive(3, keep=0.9, training=QUICK),
    "batch_ensemble": BatchEnsemble(3, training=QUICK),
    "linear": Linear(),
    "neural_linear": NeuralLinear(training=QUICK),
    "parameter_noise": ParameterNoise(training=QUICK),
    "bayes_by_backprop": BayesByBackprop(training=QUICK),
    "alpha_divergence": AlphaDivergence(samples=3, training=QUICK),
    "gaussian_process": GaussianProcess(points=50, steps=5, every=20),
}


def games(count, steps=90, name="linear"):
    return [load_problem(name).play(steps, np.random.default_rng([0, i])) for i in range(count)]


def test_all_methods_are_here():
    assert set(METHODS) <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_trial_does_not_depend_on_the_others(name):
    """Bit for bit: the same rewards alone, beside two others, and again."""
    together = games(3)
    whole = play(ALL[name], together, seed=0)
    assert torch.equal(play(ALL[name], together[:1], seed=0)[0], whole[0])
    assert torch.equal(play(ALL[name], together[:2], seed=0), whole[:2])
    assert not torch.equal(play(ALL[name], together, seed=1), whole)


@pytest.mark.parametrize("name", ALL)
def test_settings_and_back(name):
    settings = json.loads(json.dumps(settings_of(ALL[name])))
    assert method_from(settings) == ALL[name]


def test_unknown_methods_and_settings():
    with pytest.raises(ValueError, match=r"one of uniform, .*; got 'psychic'"):
        method_from({"name": "psychic"})
    with pytest.raises(ValueError, match="naive has the settings members, keep, training; got numbers"):
        method_from({"name": "naive", "numbers": 3})


QUICK_TO_LEARN = ALL | {"gaussian_process": GaussianProcess(points=250, steps=20, every=25)}
for slow in ("uniform", "alpha_divergence", "bayes_by_backprop"):
    del QUICK_TO_LEARN[slow]


@pytest.mark.parametrize("name", QUICK_TO_LEARN)
def test_it_learns(name):
    """On linear rewards they are well below chance soon; the two left out take longer than a test should."""
    played = games(3, steps=250)
    found = measure(played, play(QUICK_TO_LEARN[name], played, seed=0), play(Uniform(), played, seed=0))
    assert np.mean(found["relative_regret"]) < 75
