"""Bandit algorithms: which arm to pull for a context, and what to learn from the reward."""

from .algorithm import Algorithm, Method, Setting
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
from .registry import METHODS, method_from, settings_of
from .streams import Streams
from .uniform import Uniform

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
