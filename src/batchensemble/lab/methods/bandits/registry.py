"""Bandit algorithms by name."""

from collections.abc import Mapping
from typing import Any

from batchensemble.lab.methods.bandits.algorithm import Method
from batchensemble.lab.methods.bandits.alpha_divergence import AlphaDivergence
from batchensemble.lab.methods.bandits.batch_ensemble import BatchEnsemble
from batchensemble.lab.methods.bandits.bayes_by_backprop import BayesByBackprop
from batchensemble.lab.methods.bandits.dropout import Dropout
from batchensemble.lab.methods.bandits.gaussian_process import GaussianProcess
from batchensemble.lab.methods.bandits.greedy import Greedy
from batchensemble.lab.methods.bandits.linear import Linear, Prior
from batchensemble.lab.methods.bandits.naive import Naive
from batchensemble.lab.methods.bandits.network import NetworkTraining
from batchensemble.lab.methods.bandits.neural_linear import NeuralLinear
from batchensemble.lab.methods.bandits.parameter_noise import ParameterNoise
from batchensemble.lab.methods.bandits.uniform import Uniform
from batchensemble.lab.methods.registry import Registry

METHODS: dict[str, type[Method]] = {
    "uniform": Uniform,
    "greedy": Greedy,
    "dropout": Dropout,
    "naive": Naive,
    "batch_ensemble": BatchEnsemble,
    "linear": Linear,
    "neural_linear": NeuralLinear,
    "parameter_noise": ParameterNoise,
    "bayes_by_backprop": BayesByBackprop,
    "alpha_divergence": AlphaDivergence,
    "gaussian_process": GaussianProcess,
}


def _training(part: Mapping[str, Any]) -> NetworkTraining:
    return NetworkTraining(**{**part, "hidden": tuple(part.get("hidden", NetworkTraining.hidden))})


_PARTS = {"prior": lambda part: Prior(**part), "training": _training}
_FAMILY: Registry[Method] = Registry(METHODS, _PARTS)
settings_of, method_from = _FAMILY.settings_of, _FAMILY.method_from
