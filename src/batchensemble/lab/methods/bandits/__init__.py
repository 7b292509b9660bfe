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
from batchensemble.lab.methods.bandits.registry import METHODS, method_from, settings_of
from batchensemble.lab.methods.bandits.streams import Streams
from batchensemble.lab.methods.bandits.uniform import Uniform

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
