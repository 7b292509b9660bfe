"""Methods that learn tasks one after another, with and without forgetting, at very different costs."""

from .batch_ensemble import BatchEnsemble
from .bn_tuned import BNTuned
from .den import DEN
from .ewc import EWC
from .finetune import Finetune
from .lesson import Lesson
from .method import Method, Network, Student
from .pnn import PNN
from .rcl import RCL
from .registry import METHODS, method_from, settings_of
from .separate import Separate
from .trunk import Trunk, lenet_trunk, resnet18_trunk, resnet50_trunk

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
