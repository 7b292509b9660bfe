"""Plain networks without ensemble code, for the laboratory to convert, copy and compare."""

from .lenet import lenet
from .mlp import dense_classifier, mlp
from .resnet import ResNet, reduced_resnet18, resnet, resnet50
from .transformer import transformer

__all__ = ["ResNet", "dense_classifier", "lenet", "mlp", "reduced_resnet18", "resnet", "resnet50", "transformer"]
