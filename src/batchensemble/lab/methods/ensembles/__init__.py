"""Ways to make several predictions: one network, several, dropout's samples, BatchEnsemble's members."""

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
