"""What an ensemble is, whether it works on your network, and whether its members differ."""

from batchensemble.diagnosis.diagnose import diagnose
from batchensemble.diagnosis.findings import Diagnosis, RegressionDiagnosis
from batchensemble.diagnosis.summary import Summary, summary
from batchensemble.diagnosis.verify import VerificationError, verify

__all__ = ["Diagnosis", "RegressionDiagnosis", "Summary", "VerificationError", "diagnose", "summary", "verify"]
