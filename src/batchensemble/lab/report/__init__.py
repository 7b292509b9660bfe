"""Turns records into tables, figures and pages, and never trains.

An experiment names its views (`views`). Each is a pure function from `Evidence` (the experiment's runs at one scale,
what is missing, the paper's numbers) to one `Table`, `Figure` or `Check`:

    show=(
        comparison("accuracy", "ece", columns="data", title="Accuracy and calibration"),
        higher("accuracy", {"method": "BatchEnsemble"}, {"method": "Single"}, "It is more accurate than one network."),
        by_severity("ece", "accuracy"),
    )
"""

from batchensemble.lab.report.check import Check, Verdict
from batchensemble.lab.report.evidence import Evidence, NotMeasured, Place, Summary
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.quantity import Quantity, quantity
from batchensemble.lab.report.table import Cell, Column, Line, Table
from batchensemble.lab.report.views import View
from batchensemble.lab.report.write import write_report

__all__ = [
    "Cell",
    "Check",
    "Column",
    "Evidence",
    "Figure",
    "Line",
    "NotMeasured",
    "Place",
    "Quantity",
    "Summary",
    "Table",
    "Verdict",
    "View",
    "quantity",
    "write_report",
]
