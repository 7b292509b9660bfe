"""Metrics relative to those of one method."""

from collections.abc import Sequence
from dataclasses import replace

from batchensemble.lab.report.check import Check
from batchensemble.lab.report.evidence import Evidence, Place, number_of
from batchensemble.lab.report.figure import Figure
from batchensemble.lab.report.table import Table
from batchensemble.lab.report.views.view import View


def relative_to(view: View, metrics: Sequence[str], *, to: str) -> View:
    """Extend a view's evidence by `relative_<metric>` for every run: the metric over the mean of one method.

    Args:
        view: the view to extend.
        metrics: the metrics to make relative.
        to: the method whose mean is 1.

    Examples:
        >>> from batchensemble.lab.report.views import comparison
        >>> view = relative_to(comparison("relative_operations"), ["operations"], to="Vanilla")
        >>> view(Evidence("cost", "smoke", ())).headings
        ('method', 'relative operations', 'seeds')
    """

    def related(evidence: Evidence) -> Table | Figure | Check:
        means = {metric: evidence.summary(metric, method=to) for metric in metrics}
        ones = {metric: mean.mean for metric, mean in means.items() if mean is not None and mean.mean}
        return view(replace(evidence, places=tuple(_related(place, ones) for place in evidence.places)))

    return related


def _related(place: Place, ones: dict[str, float]) -> Place:
    if place.record is None:
        return place
    found = {metric: number_of(place.record, metric) for metric in ones}
    ratios = {f"relative_{metric}": value / ones[metric] for metric, value in found.items() if value is not None}
    return replace(place, record=replace(place.record, metrics={**place.record.metrics, **ratios}))
