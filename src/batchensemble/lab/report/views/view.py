"""What a view is."""

from collections.abc import Callable

from batchensemble.lab.report.check import Check
from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.table import Table

View = Callable[[Evidence], Table | Figure | Check]
"""Maps evidence to one table, figure or checked claim; nothing is trained, read or written."""
