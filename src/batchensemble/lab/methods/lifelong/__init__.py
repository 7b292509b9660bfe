"""Methods that learn tasks one after another, with and without forgetting, at very different costs."""

from batchensemble.lab.methods.lifelong.batch_ensemble import BatchEnsemble
from batchensemble.lab.methods.lifelong.bn_tuned import BNTuned
from batchensemble.lab.methods.lifelong.den import DEN
from batchensemble.lab.methods.lifelong.ewc import EWC
from batchensemble.lab.methods.lifelong.finetune import Finetune
from batchensemble.lab.methods.lifelong.lesson import Lesson
from batchensemble.lab.methods.lifelong.method import Method, Network, Student
from batchensemble.lab.methods.lifelong.pnn import PNN
from batchensemble.lab.methods.lifelong.rcl import RCL
from batchensemble.lab.methods.lifelong.separate import Separate
from batchensemble.lab.methods.lifelong.trunk import Trunk, lenet_trunk, resnet18_trunk, resnet50_trunk
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
"""The methods by their names in records."""

_REGISTRY: Registry[Method] = Registry(METHODS)
settings_of, method_from = _REGISTRY.settings_of, _REGISTRY.method_from

__all__ = [
    "DEN",
    "EWC",
    "METHODS",
    "PNN",
    "RCL",
    "BNTuned",
    "BatchEnsemble",
    "Finetune",
    "Lesson",
    "Method",
    "Network",
    "Separate",
    "Student",
    "Trunk",
    "lenet_trunk",
    "method_from",
    "resnet18_trunk",
    "resnet50_trunk",
    "settings_of",
]
