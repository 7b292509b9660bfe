"""Metrics relative to one method's."""

from fake_records import evidence, place

from batchensemble.lab.records import Published
from batchensemble.lab.report import Place
from batchensemble.lab.report.views import comparison, relative_to


def took(method: str, seed: int, operations: float) -> Place:
    return place({"operations": operations}, {"method": method}, seed)


def test_every_method_is_divided_by_the_mean_of_one() -> None:
    places = (took("Vanilla", 0, 10.0), took("Vanilla", 1, 30.0), took("PNN", 0, 60.0), Place({"method": "DEN"}, 0))
    published = (Published({"method": "PNN"}, "relative_operations", 1.12),)
    view = relative_to(comparison("relative_operations"), ["operations", "absent"], to="Vanilla")
    table = view(evidence(places, published))
    ours = {line.labels[0]: line.cells[0].ours for line in table.lines}
    assert ours["Vanilla"].mean == 1.0
    assert ours["PNN"].mean == 3.0
    assert "DEN" not in ours  # nothing of it was run
    assert table.lines[1].cells[0].paper == published


def test_without_that_method_nothing_is_relative() -> None:
    view = relative_to(comparison("relative_operations"), ["operations"], to="Vanilla")
    table = view(evidence([took("PNN", 0, 60.0)]))
    assert table.lines[0].cells[0].ours is None
