"""Bandit algorithms: which arm to pull for a context, and what to learn from the reward."""

from batchensemble.lab.methods.bandits.algorithm import Algorithm, Method, Setting
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
from batchensemble.lab.methods.bandits.streams import Streams
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
"""The methods by their names in records."""

_REGISTRY: Registry[Method] = Registry(METHODS, {"prior": Prior, "training": NetworkTraining})
settings_of, method_from = _REGISTRY.settings_of, _REGISTRY.method_from

__all__ = [
    "METHODS",
    "Algorithm",
    "AlphaDivergence",
    "BatchEnsemble",
    "BayesByBackprop",
    "Dropout",
    "GaussianProcess",
    "Greedy",
    "Linear",
    "Method",
    "Naive",
    "NetworkTraining",
    "NeuralLinear",
    "ParameterNoise",
    "Prior",
    "Setting",
    "Streams",
    "Uniform",
    "method_from",
    "settings_of",
]
