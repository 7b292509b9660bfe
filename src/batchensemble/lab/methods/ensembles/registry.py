"""Ways to make an ensemble, by name."""

from batchensemble.lab.methods.ensembles.batch_ensemble import BatchEnsemble
from batchensemble.lab.methods.ensembles.dropout import Dropout
from batchensemble.lab.methods.ensembles.method import Method
from batchensemble.lab.methods.ensembles.naive import Naive
from batchensemble.lab.methods.ensembles.single import Single
from batchensemble.lab.methods.registry import Registry

METHODS: dict[str, type[Method]] = {
    "single": Single,
    "naive": Naive,
    "dropout": Dropout,
    "batch_ensemble": BatchEnsemble,
}
_FAMILY: Registry[Method] = Registry(METHODS)
settings_of, method_from = _FAMILY.settings_of, _FAMILY.method_from
