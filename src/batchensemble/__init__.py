"""An ensemble in the memory of one network."""

from importlib.metadata import PackageNotFoundError, version

from batchensemble import bandits, lifelong, metrics, nn
from batchensemble.diagnosis import (
    Diagnosis,
    RegressionDiagnosis,
    Summary,
    VerificationError,
    diagnose,
    summary,
    verify,
)
from batchensemble.ensemble import Ensemble, convert, load
from batchensemble.export import export_onnx, export_program
from batchensemble.generate import generate
from batchensemble.optim import freeze_shared_, mean_loss, mean_weight_penalty, parameter_groups
from batchensemble.prediction import Prediction

try:
    __version__ = version("batchensemble")
except PackageNotFoundError:  # a source tree that was not installed
    __version__ = "unknown"

__all__ = [
    "Diagnosis",
    "Ensemble",
    "Prediction",
    "RegressionDiagnosis",
    "Summary",
    "VerificationError",
    "bandits",
    "convert",
    "diagnose",
    "export_onnx",
    "export_program",
    "freeze_shared_",
    "generate",
    "lifelong",
    "load",
    "mean_loss",
    "mean_weight_penalty",
    "metrics",
    "nn",
    "parameter_groups",
    "summary",
    "verify",
]


def __dir__() -> list[str]:
    return __all__
