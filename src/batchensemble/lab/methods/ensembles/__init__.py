"""Ways to predict: one network, several, samples of dropout, members of a BatchEnsemble."""

from .batch_ensemble import BatchEnsemble
from .dropout import Dropout
from .method import Batch, Method, Network, SeededMethod, Stream
from .naive import Naive
from .registry import METHODS, method_from, settings_of
from .single import Single

__all__ = [
    "METHODS",
    "Batch",
    "BatchEnsemble",
    "Dropout",
    "Method",
    "Naive",
    "Network",
    "SeededMethod",
    "Single",
    "Stream",
    "method_from",
    "settings_of",
]
