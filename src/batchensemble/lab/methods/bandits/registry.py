"""Bandit algorithms by name."""

from collections.abc import Mapping
from typing import Any

from ..registry import Registry
from .algorithm import Method
from .alpha_divergence import AlphaDivergence
from .batch_ensemble import BatchEnsemble
from .bayes_by_backprop import BayesByBackprop
from .dropout import Dropout
from .gaussian_process import GaussianProcess
from .greedy import Greedy
from .linear import Linear, Prior
from .naive import Naive
from .network import NetworkTraining
from .neural_linear import NeuralLinear
from .parameter_noise import ParameterNoise
from .uniform import Uniform

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
