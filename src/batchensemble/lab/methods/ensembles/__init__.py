"""Ways to predict: one network, several, samples of dropout, members of a BatchEnsemble."""

from batchensemble.lab.methods.ensembles.batch_ensemble import BatchEnsemble
from batchensemble.lab.methods.ensembles.dropout import Dropout
from batchensemble.lab.methods.ensembles.method import Batch, Method, Network, SeededMethod, Stream
from batchensemble.lab.methods.ensembles.naive import Naive
from batchensemble.lab.methods.ensembles.single import Single
from batchensemble.lab.methods.registry import Registry

METHODS: dict[str, type[Method]] = {
    "single": Single,
    "naive": Naive,
    "dropout": Dropout,
    "batch_ensemble": BatchEnsemble,
}
"""The methods by their names in records."""

_REGISTRY: Registry[Method] = Registry(METHODS)
settings_of, method_from = _REGISTRY.settings_of, _REGISTRY.method_from

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
