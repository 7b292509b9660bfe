"""The evidence of an experiment at one scale: its runs in their places, and the paper's numbers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from batchensemble.lab.records import Published, Record, Result, Scale
from batchensemble.lab.store import CorruptRecord

CORRUPTED = "corrupted_"
"""Prefix of a metric that stands for its mean over all corruptions and severities."""


class NotMeasured(Exception):
    """There is nothing to draw yet; the message says what is missing."""


@dataclass(frozen=True)
class Place:
    """Where a run belongs, and its record if it was run; `further` marks seeds that the grid does not have."""

    labels: Mapping[str, str]
    seed: int
    record: Record | None = None
    further: bool = False


@dataclass(frozen=True)
class Summary:
    """Summary of numbers over seeds: mean, sample standard deviation (`None` for a single number) and count.

    Examples:
        >>> Summary.of([1.0, 3.0])
        Summary(mean=2.0, spread=1.4142135623730951, count=2)
        >>> Summary.of([5.0]).spread is None, Summary.of([]) is None
        (True, True)
    """

    mean: float
    spread: float | None
    count: int

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Summary | None":
        """Summarise numbers; `None` if there are none."""
        if not numbers:
            return None
        mean = math.fsum(numbers) / len(numbers)
        if len(numbers) == 1:
            return cls(mean, None, 1)
        squares = math.fsum((number - mean) ** 2 for number in numbers)
        return cls(mean, math.sqrt(squares / (len(numbers) - 1)), len(numbers))


@dataclass(frozen=True)
class Evidence:
    """The runs of one experiment at one scale, in the order of its grid.

    Args:
        experiment: its id.
        scale: the scale of all its runs.
        places: every run that was asked for, and any further seeds.
        published: the paper's numbers, in the units of the records (an accuracy is a fraction, not a percentage).

    Examples:
        >>> from batchensemble.lab.provenance import Provenance
        >>> from batchensemble.lab.records import Run
        >>> record = Record(Run("classification", {}, "smoke"), {"accuracy": 0.5}, Provenance("a laptop"))
        >>> evidence = Evidence("cifar", "smoke", (Place({"method": "Single"}, 0, record),))
        >>> evidence.labels("method"), evidence.summary("accuracy", method="Single").mean
        (('Single',), 0.5)
    """

    experiment: str
    scale: Scale
    places: tuple[Place, ...]
    published: tuple[Published, ...] = ()

    @property
    def results(self) -> tuple[Result, ...]:
        """The runs that have a record."""
        return tuple(Result(place.labels, place.record) for place in self.places if place.record)

    @property
    def missing(self) -> tuple[Place, ...]:
        """The runs that were asked for but have no record."""
        return tuple(place for place in self.places if place.record is None)

    @property
    def asked(self) -> int:
        """The number of runs in the grid, without further seeds."""
        return sum(not place.further for place in self.places)

    @property
    def comparable(self) -> bool:
        """Whether figures may draw the paper's numbers beside ours; tables print them and the scale at every scale."""
        return self.scale == "paper"

    def where(self, **labels: str) -> "Evidence":
        """The part with these labels; published numbers stay unless their labels contradict them."""
        return replace(
            self,
            places=tuple(place for place in self.places if labels.items() <= place.labels.items()),
            published=tuple(number for number in self.published if _agree(number.labels, labels)),
        )

    def labels(self, name: str) -> tuple[str, ...]:
        """The values of a label in the order of the grid."""
        return tuple(dict.fromkeys(place.labels[name] for place in self.places if name in place.labels))

    def by(self, label: str) -> "dict[str, Evidence]":
        """Split by the values of a label, in the order of the grid."""
        return {value: self.where(**{label: value}) for value in self.labels(label)}

    def differing(self, *apart_from: str) -> tuple[str, ...]:
        """The labels in which runs differ, apart from those named."""
        names = dict.fromkeys(name for place in self.places for name in place.labels)
        return tuple(
            name
            for name in names
            if name not in apart_from and len({place.labels.get(name) for place in self.places}) > 1
        )

    def apart(self, *within: str) -> "dict[str, Evidence]":
        """Split into parts that differ only in the labels of `within`, keyed by the values of the other labels.

        Examples:
            >>> places = (Place({"method": "Single", "data": data}, 0) for data in ("CIFAR-10", "CIFAR-100"))
            >>> list(Evidence("cifar", "smoke", tuple(places)).apart("method"))
            ['CIFAR-10', 'CIFAR-100']
        """
        names = self.differing(*within)
        kinds = dict.fromkeys(tuple(place.labels.get(name, "") for name in names) for place in self.places)
        return {
            ", ".join(filter(None, values)): self.where(**dict(zip(names, values, strict=True))) for values in kinds
        }

    def kinds(self, rows: str) -> "dict[str, Evidence]":
        """Split into runs of one kind each, keyed by the label `rows` and whatever else they differ in."""
        return {
            ", ".join(filter(None, (value, title))): kind
            for title, part in self.apart(rows).items()
            for value, kind in part.by(rows).items()
        }

    def numbers(self, metric: str, **labels: str) -> tuple[float, ...]:
        """A metric of every run with these labels; a list (members, tasks) counts as its mean.

        Raises:
            ValueError: the labels match runs of different kinds, whose numbers must not be mixed.
        """
        part = self.where(**labels)
        if differing := part.differing():
            raise ValueError(f"{labels} fits several kinds of runs of {self.experiment}; say also {differing}")
        found = (number_of(result.record, metric) for result in part.results)
        return tuple(number for number in found if number is not None)

    def summary(self, metric: str, **labels: str) -> Summary | None:
        """Summarise a metric over the seeds of the runs with these labels; `None` if nothing was measured."""
        return Summary.of(self.numbers(metric, **labels))

    def paper(self, metric: str, **labels: str) -> tuple[Published, ...]:
        """The paper's numbers that belong beside the runs with these labels.

        They agree with every label that those runs share, so that no number for CIFAR-10 appears beside a run on other
        data. There are several if the paper contradicts itself.
        """
        places = self.where(**labels).places
        shared = set.intersection(*(set(place.labels.items()) for place in places)) if places else set()
        known = {**dict(shared), **labels}
        fitting = (number for number in self.published if number.metric == metric)
        return tuple(number for number in fitting if _agree(number.labels, known))

    def with_metric(self, metric: str, **labels: str) -> Iterator[tuple[Result, Any]]:
        """Every result that has the metric, with the metric as it was recorded."""
        for result in self.where(**labels).results:
            if result.record.metrics.get(metric) is not None:
                yield result, result.record.metrics[metric]

    def with_arrays(self, *names: str) -> Iterator[Result]:
        """Every result that has these arrays."""
        return (result for result in self.results if set(names) <= set(result.record.arrays))


def number_of(record: Record, metric: str) -> float | None:
    """A metric as one number, a list as the mean of its numbers; `None` if there is none.

    Raises:
        CorruptRecord: it is neither a number nor a list of numbers.
    """
    value = record.metrics.get(metric, _over_corruptions(record, metric))
    numbers = [item for item in (value if isinstance(value, list) else [value]) if item is not None]
    if not all(isinstance(number, int | float) for number in numbers):
        told = f"{metric} must be a number or a list of numbers, got {value!s:.40}"
        raise CorruptRecord(f"{record.run.name}.json: {told}; delete it and run it again", record.run.name)
    return math.fsum(numbers) / len(numbers) if numbers else None


def _over_corruptions(record: Record, metric: str) -> list[float | None] | None:
    """The rows whose mean `corrupted_accuracy` and the like are, for records that lack the mean."""
    if not metric.startswith(CORRUPTED) or "shift" not in record.metrics:
        return None
    return [row.get(metric.removeprefix(CORRUPTED)) for row in record.metrics["shift"] if row["severity"]]


def _agree(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Whether two sets of labels agree on the names they share."""
    return all(second.get(name, value) == value for name, value in first.items())
