"""What a view is.

Views are made by functions that take what a user chooses; a figure's drawing is a function of its own, `_draw`, that is
given all it draws and knows no evidence.
"""

from collections.abc import Callable

from batchensemble.lab.report.check import Check
from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.table import Table

View = Callable[[Evidence], Table | Figure | Check]
"""Maps evidence to one table, figure or checked claim; nothing is trained, read or written."""
