"""Lifelong-learning methods by name."""

from ..registry import Registry
from .batch_ensemble import BatchEnsemble
from .bn_tuned import BNTuned
from .den import DEN
from .ewc import EWC
from .finetune import Finetune
from .method import Method
from .pnn import PNN
from .rcl import RCL
from .separate import Separate

METHODS: dict[str, type[Method]] = {
    "finetune": Finetune,
    "ewc": EWC,
    "pnn": PNN,
    "bn_tuned": BNTuned,
    "den": DEN,
    "rcl": RCL,
    "separate": Separate,
    "batch_ensemble": BatchEnsemble,
}
_FAMILY: Registry[Method] = Registry(METHODS)
settings_of, method_from = _FAMILY.settings_of, _FAMILY.method_from
