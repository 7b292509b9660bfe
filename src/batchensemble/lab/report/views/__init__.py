"""Named views: each makes a function from the evidence of an experiment to one table, figure or checked claim."""

from batchensemble.lab.report.views.claims import higher, lower, on_a_par, ratio
from batchensemble.lab.report.views.comparison import comparison
from batchensemble.lab.report.views.severity import by_severity
from batchensemble.lab.report.views.view import View

__all__ = ["View", "by_severity", "comparison", "higher", "lower", "on_a_par", "ratio"]
