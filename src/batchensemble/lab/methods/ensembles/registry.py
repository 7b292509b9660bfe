"""Ways to make an ensemble, by name."""

from ..registry import Registry
from .batch_ensemble import BatchEnsemble
from .dropout import Dropout
from .method import Method
from .naive import Naive
from .single import Single

METHODS: dict[str, type[Method]] = {
    "single": Single,
    "naive": Naive,
    "dropout": Dropout,
    "batch_ensemble": BatchEnsemble,
}
_FAMILY: Registry[Method] = Registry(METHODS)
settings_of, method_from = _FAMILY.settings_of, _FAMILY.method_from
