"""Scale, seeds, hardware, versions and commit in words, as shown with every table and figure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Scale
from batchensemble.lab.report.evidence import Evidence, number_of

SCALE_MEANING: Mapping[Scale, str] = {
    "paper": "the published networks and data, trained as published unless the experiment says otherwise",
    "short": "the published networks, data and methods with a fifth of the epochs",
    "small": "smaller or shorter than the paper's setting, so not directly comparable with its numbers",
    "smoke": "tiny networks on synthetic or bundled data, trained for seconds: it shows that everything runs, and says "
    "nothing about the paper",
}
PACKAGES = ("python", "torch", "batchensemble")
ABSENT = "not installed"  # what records say of a package that ran from source
NAMED = 2  # if more rows have other seeds than most, they are not named
Seeds = tuple[int, ...]


def circumstances(evidence: Evidence) -> str:
    """The line under a table or figure.

    Examples:
        >>> circumstances(Evidence("cifar", "smoke", ()))
        'Smoke scale · nothing was run'
    """
    records = [result.record for result in evidence.results]
    if not records:
        return f"{evidence.scale.capitalize()} scale · nothing was run"
    parts = [
        f"{evidence.scale.capitalize()} scale",
        _seeds(evidence),
        epochs_of(records),
        _joined(record.provenance.hardware for record in records),
        _versions(record.provenance for record in records),
        _commits(record.provenance for record in records),
    ]
    if evidence.missing:
        parts.append(f"{len(evidence.missing)} of {evidence.asked} runs are missing")
    return " · ".join(part for part in parts if part)


def not_drawn(kinds: Mapping[str, Evidence], *arrays: str) -> str:
    """Name the kinds of runs, measured, of which a figure lacks all or some: the arrays it draws were not kept.

    Examples:
        >>> not_drawn({"Single": Evidence("cifar", "smoke", ())}, "logits")
        ''
    """
    counts = {name: (len(part.results), len(list(part.with_arrays(*arrays)))) for name, part in kinds.items()}
    lacking = [
        f"{name} ({there - kept} of {there} runs)" if kept else name
        for name, (there, kept) in counts.items()
        if kept < there
    ]
    return f"Measured but not drawn, since predictions were not kept: {'; '.join(lacking)}." if lacking else ""


def commit_of(provenance: Provenance) -> str:
    """Describe the commit in words."""
    changed = " with changes" if provenance.dirty else ""
    return f"commit {provenance.commit}{changed}" if provenance.commit else "commit unknown"


def seed_counts(evidence: Evidence) -> str:
    """How many seeds rows have, in words: `3 seeds`, `1 seed (Single: 4)` or, if many differ, `1 to 4 seeds`.

    Examples:
        >>> seed_counts(Evidence("cifar", "smoke", ()))
        ''
    """
    counts = {row: {tuple(range(len(seeds))) for seeds in several} for row, several in _seeds_of_rows(evidence).items()}
    if not counts:
        return ""
    usual = _usual(counts)
    if usual is None:
        return f"{_least_to_most(counts)} seeds"
    others = [f"{row}: {len(seeds)}" for row, seeds in _others(counts, usual).items()]
    return f"{len(usual)} seed{'s' * (len(usual) > 1)}{_in_brackets(others)}"


def _seeds(evidence: Evidence) -> str:
    """Which seeds rows have, in words: `seeds 0 to 2`, `seed 0 (Single: 0 to 3)`."""
    found = _seeds_of_rows(evidence)
    usual = _usual(found)
    if usual is None:
        every = sorted({seed for several in found.values() for seeds in several for seed in seeds})
        return f"seeds {_ranges(every)}, {_least_to_most(found)} of each row"
    others = [f"{row}: {_ranges(list(seeds))}" for row, seeds in _others(found, usual).items()]
    return f"seed{'s' * (len(usual) > 1)} {_ranges(list(usual))}{_in_brackets(others)}"


def _seeds_of_rows(evidence: Evidence) -> dict[str, set[Seeds]]:
    """The seeds of every kind of run, by its first label, such as the method."""
    found: dict[str, set[Seeds]] = {}
    for part in evidence.apart().values():
        if seeds := sorted({result.record.run.seed for result in part.results}):
            found.setdefault(next(iter(part.results[0].labels.values()), ""), set()).add(tuple(seeds))
    return found


def _usual(rows: Mapping[str, set[Seeds]]) -> Seeds | None:
    """The seeds of most rows; `None` if a row has several kinds of runs that differ, or many rows differ."""
    if any(len(several) > 1 for several in rows.values()):
        return None
    frequency = Counter(seeds for several in rows.values() for seeds in several)
    usual = max(frequency, key=lambda seeds: (frequency[seeds], -len(seeds)))
    return usual if len(rows) - frequency[usual] <= NAMED else None


def _others(rows: Mapping[str, set[Seeds]], usual: Seeds) -> dict[str, Seeds]:
    return {row: seeds for row, several in rows.items() for seeds in several if seeds != usual}


def _least_to_most(rows: Mapping[str, set[Seeds]]) -> str:
    counts = sorted({len(seeds) for several in rows.values() for seeds in several})
    return " to ".join(dict.fromkeys((str(counts[0]), str(counts[-1]))))


def _in_brackets(texts: list[str]) -> str:
    return f" ({'; '.join(texts)})" if texts else ""


def _ranges(numbers: list[int]) -> str:
    """Write `[0, 1, 2, 3]` as `0 to 3`, and anything shorter or with gaps as a list."""
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def epochs_of(records: Iterable[Record]) -> str:
    """The lengths of trainings in words: `3, 10 or 30 epochs`; nothing if no record has any."""
    epochs = sorted({number for record in records if (number := number_of(record, "epochs"))})
    *others, last = [f"{number:g}" for number in epochs] or [""]
    words = " or ".join(filter(None, (", ".join(others), last)))
    return f"{words} epoch{'s' * (epochs != [1])}" if epochs else ""


def _versions(sources: Iterable[Provenance]) -> str:
    """The versions in words, package by package: `python 3.12.3, torch 2.11.0 or 2.13.0`."""
    versions = [source.versions for source in sources]
    found = {name: sorted({one.get(name, ABSENT) for one in versions} - {ABSENT}) for name in PACKAGES}
    return ", ".join(f"{name} {' or '.join(several)}" for name, several in found.items() if several)


def _commits(sources: Iterable[Provenance]) -> str:
    """The commits in words: `commits 9c0e65a, 0e4963e230b4 with changes`."""
    known = [commit_of(source).removeprefix("commit ") for source in sources]
    several = dict.fromkeys(known)
    return f"commit{'s' * (len(several) > 1)} {', '.join(several)}"


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part))
