"""Plain networks, no ensemble code: what the laboratory converts, copies and compares."""

from .lenet import lenet
from .mlp import mlp
from .resnet import ResNet, reduced_resnet18, resnet, resnet50
from .transformer import transformer

__all__ = ["ResNet", "lenet", "mlp", "reduced_resnet18", "resnet", "resnet50", "transformer"]
