"""Plain networks without ensemble code, for the laboratory to convert, copy and compare."""

from batchensemble.lab.models.lenet import lenet
from batchensemble.lab.models.mlp import dense_classifier, mlp
from batchensemble.lab.models.resnet import ResNet, reduced_resnet18, resnet, resnet50
from batchensemble.lab.models.transformer import transformer

__all__ = ["ResNet", "dense_classifier", "lenet", "mlp", "reduced_resnet18", "resnet", "resnet50", "transformer"]
