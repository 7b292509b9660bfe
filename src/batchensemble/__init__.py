"""An ensemble in the memory of one network."""

from importlib.metadata import PackageNotFoundError, version

from batchensemble import bandits, lifelong, metrics, nn
from batchensemble.convert import convert, load
from batchensemble.diagnose import diagnose
from batchensemble.diagnosis import Diagnosis, RegressionDiagnosis
from batchensemble.ensemble import Ensemble
from batchensemble.export import export_onnx, export_program
from batchensemble.generate import generate
from batchensemble.optim import freeze_shared_, mean_loss, mean_weight_penalty, parameter_groups
from batchensemble.prediction import Prediction
from batchensemble.summary import Summary, summary
from batchensemble.verify import VerificationError, verify

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
