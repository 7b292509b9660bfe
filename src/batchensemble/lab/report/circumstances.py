"""Scale, seeds, hardware, versions and commit in words, as shown with every table and figure."""

from collections.abc import Iterable, Mapping

from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Scale
from batchensemble.lab.report.evidence import Evidence, number_of

SCALE_MEANING: Mapping[Scale, str] = {
    "paper": "the published setting",
    "short": "the published networks, data and methods with a fifth of the epochs",
    "small": "smaller or shorter than the paper's setting: not comparable with its numbers one to one",
    "smoke": "tiny networks on synthetic or embedded data, seconds of training: it shows that everything runs, "
    "and says nothing about the paper",
}
ABSENT = "not installed"  # what records say of a package that ran from source


def circumstances(evidence: Evidence) -> str:
    """Returns the line under a table or figure.

    Examples:
        >>> circumstances(Evidence("cifar", "smoke", ()))
        'Smoke scale · nothing was run'
    """
    records = [result.record for result in evidence.results]
    if not records:
        return f"{evidence.scale.capitalize()} scale · nothing was run"
    parts = [
        f"{evidence.scale.capitalize()} scale",
        _seeds(records),
        epochs_of(records),
        _joined(record.provenance.hardware for record in records),
        _joined(_versions(record.provenance) for record in records),
        _joined(commit_of(record.provenance) for record in records),
    ]
    if evidence.missing:
        parts.append(f"{len(evidence.missing)} of {evidence.asked} runs are missing")
    return " · ".join(part for part in parts if part)


def commit_of(provenance: Provenance) -> str:
    """Describes the commit in words."""
    changed = " with changes" if provenance.dirty else ""
    return f"commit {provenance.commit}{changed}" if provenance.commit else "commit unknown"


def _seeds(records: Iterable[Record]) -> str:
    seeds = sorted({record.run.seed for record in records})
    return f"seed{'s' if len(seeds) > 1 else ''} {_ranges(seeds)}"


def _ranges(numbers: list[int]) -> str:
    """Writes `[0, 1, 2, 3]` as `0 to 3`, and anything shorter or with gaps as a list."""
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def epochs_of(records: Iterable[Record]) -> str:
    """Returns the lengths of trainings in words: `3, 10 or 30 epochs`; nothing if no record has any."""
    epochs = sorted({number for record in records if (number := number_of(record, "epochs"))})
    *others, last = [f"{number:g}" for number in epochs] or [""]
    words = " or ".join(filter(None, (", ".join(others), last)))
    return f"{words} epoch{'s' * (epochs != [1])}" if epochs else ""


def _versions(provenance: Provenance) -> str:
    names = ("python", "torch", "batchensemble")
    found = {name: version for name in names if (version := provenance.versions.get(name, ABSENT)) != ABSENT}
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part))
