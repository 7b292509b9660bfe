"""Lifelong-learning methods by name."""

from batchensemble.lab.methods.lifelong.batch_ensemble import BatchEnsemble
from batchensemble.lab.methods.lifelong.bn_tuned import BNTuned
from batchensemble.lab.methods.lifelong.den import DEN
from batchensemble.lab.methods.lifelong.ewc import EWC
from batchensemble.lab.methods.lifelong.finetune import Finetune
from batchensemble.lab.methods.lifelong.method import Method
from batchensemble.lab.methods.lifelong.pnn import PNN
from batchensemble.lab.methods.lifelong.rcl import RCL
from batchensemble.lab.methods.lifelong.separate import Separate
from batchensemble.lab.methods.registry import Registry

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
