"""Ways to predict: one network, several, samples of dropout, members of a BatchEnsemble."""

from batchensemble.lab.methods.ensembles.batch_ensemble import BatchEnsemble
from batchensemble.lab.methods.ensembles.dropout import Dropout
from batchensemble.lab.methods.ensembles.method import Batch, Method, Network, SeededMethod, Stream
from batchensemble.lab.methods.ensembles.naive import Naive
from batchensemble.lab.methods.ensembles.registry import METHODS, method_from, settings_of
from batchensemble.lab.methods.ensembles.single import Single

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
