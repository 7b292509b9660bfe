"""Evaluates views, names the record if one cannot be read, and leaves it out if that is wanted."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from batchensemble.lab.records import Record
from batchensemble.lab.report.check import Check
from batchensemble.lab.report.evidence import Evidence, NotMeasured
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.table import Table
from batchensemble.lab.report.views.view import View
from batchensemble.lab.store import CorruptRecord, Skipped, UnreadableRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Shown = TypeVar("Shown")
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a view may raise if it finds, say, a string where it expects a list of numbers."""


def show_readable(show: Callable[[list[Record]], Shown], records: Iterable[Record], skipped: Skipped | None) -> Shown:
    """Show records; those that cannot be shown are left out, and everything is shown again without them.

    Args:
        show: shows some of the records.
        records: all of them.
        skipped: is told of those that are left out; without it, they are errors.

    Raises:
        UnreadableRecord: a record cannot be shown, and `skipped` is not given or it is not known which one it is.
    """
    left = list(records)
    while True:
        try:
            return show(left)
        except UnreadableRecord as error:
            others = [record for record in left if record.run.name not in error.names]
            if skipped is None or len(others) == len(left):
                raise
            skipped(error)
            left = others


def evaluate(view: View, evidence: Evidence) -> Table | Figure | Check:
    """Apply a view to the evidence; a figure also reports what goes wrong when it is drawn.

    Raises:
        NotMeasured: there is nothing to show yet.
        CorruptRecord: a record's metrics or arrays do not have the types that the view expects.
    """
    shown = _careful(view, evidence)
    if not isinstance(shown, Figure):
        return shown

    def draw(canvas: "Canvas") -> None:
        _careful(lambda part: shown.draw(canvas) if part is evidence else _drawn(view(part)), evidence)

    return replace(shown, draw=draw)


def _careful(show: Callable[[Evidence], Shown], evidence: Evidence) -> Shown:
    """Call `show`; if it fails, raise an error that names the records it cannot show on their own."""
    try:
        return show(evidence)
    except UnreadableRecord:
        raise
    except UNREADABLE as error:
        told = f"{type(error).__name__}: {error}"
        alone = [replace(evidence, places=(place,)) for place in evidence.places if place.record]
        names = [part.results[0].record.run.name for part in alone if not _readable(show, part)]
        if not names:
            raise CorruptRecord(f"the records of {evidence.experiment} do not go together ({told})") from error
        files = ", ".join(f"{name}.json" for name in names)
        raise CorruptRecord(f"{files}: not to be read ({told}); delete it and run it again", *names) from error


def _readable(show: Callable[[Evidence], object], evidence: Evidence) -> bool:
    try:
        with suppress(NotMeasured):
            show(evidence)
    except UNREADABLE:
        return False
    return True


def _drawn(shown: Table | Figure | Check) -> None:
    if isinstance(shown, Figure):
        shown.render()
