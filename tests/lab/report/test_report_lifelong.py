"""Costs relative to one method's."""

from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Published, Record, Run
from batchensemble.lab.report.evidence import Evidence, Place
from batchensemble.lab.report.lifelong import relative_to
from batchensemble.lab.report.views import comparison


def place(method: str, seed: int, operations: float) -> Place:
    record = Record(Run("lifelong", {"m": method}, "smoke", seed), {"operations": operations}, Provenance("a laptop"))
    return Place({"method": method}, seed, record)


def test_every_method_is_divided_by_the_mean_of_one() -> None:
    places = (place("Vanilla", 0, 10.0), place("Vanilla", 1, 30.0), place("PNN", 0, 60.0), Place({"method": "DEN"}, 0))
    published = (Published({"method": "PNN"}, "relative_operations", 1.12),)
    view = relative_to(comparison("relative_operations"), ["operations", "absent"], to="Vanilla")
    table = view(Evidence("cost", "smoke", places, published))
    ours = {line.labels[0]: line.cells[0].ours for line in table.lines}
    assert ours["Vanilla"].mean == 1.0
    assert ours["PNN"].mean == 3.0
    assert "DEN" not in ours  # nothing of it was run
    assert table.lines[1].cells[0].paper == published


def test_without_that_method_nothing_is_relative() -> None:
    view = relative_to(comparison("relative_operations"), ["operations"], to="Vanilla")
    table = view(Evidence("cost", "smoke", (place("PNN", 0, 60.0),)))
    assert table.lines[0].cells[0].ours is None
