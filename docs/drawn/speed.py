"""Our time over that of plain networks: records of `batchensemble bench`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from batchensemble.lab.studies.speed.cases import LIMIT, SINGLE
from batchensemble.lab.studies.speed.command import how_run
from batchensemble.lab.studies.speed.ways import ONE_BY_ONE, OURS, OWN_NORMS, WAYS
from drawn.records import evidence_of, made, markdown, speeds, where

WHOLE = ("inference", "training")
NUMBERS = ("ms", "denominator_ms", "ratio", "memory_ratio")
Row = dict[str, Any]


@dataclass(frozen=True)
class Machine:
    """What was measured of one network on one machine; of what was measured more than once, the median."""

    title: str
    members: int
    where: str
    rows: Sequence[Row]

    def over(self, denominator: str, way: str = OURS) -> dict[str, Row]:
        """Rows by case; a training step shows both denominators the same rows, so they are one there."""
        rows = [row for row in self.rows if row["way"] == way]
        same = {row["case"]: row for row in rows if row["case"].startswith("training")}
        return same | {row["case"]: row for row in rows if row["denominator"] == denominator}


def speed_network() -> str:
    """A whole network's time beside both denominators, a table for every machine."""
    return "\n\n".join(filter(None, map(_network_table, _machines())))


def speed_words() -> str:
    """What members cost over one network, a sentence for every machine."""
    return "\n".join(filter(None, map(_words, _machines())))


def speed() -> str:
    """Layers alone, and rows that choose among many members."""
    return "\n\n".join(filter(None, map(_layer_table, _machines())))


def speed_peers() -> str:
    """Other ways to have as many members, each over the denominators of its own run, beside ours."""
    return "\n\n".join(filter(None, map(_peer_table, _machines())))


def cost_by_members() -> str:
    """Test time and parameters of ever more members, over one network, on a CPU."""
    evidence = evidence_of("cost", "small")
    (result,) = evidence.results
    rows = result.record.metrics["cost"]
    kinds = tuple(dict.fromkeys(row["kind"] for row in rows))
    cells = {(row["kind"], row["members"]): row for row in rows}
    lines = []
    for members in dict.fromkeys(row["members"] for row in rows):
        times = (f"{cells[kind, members]['relative_seconds']:.1f}" for kind in kinds)
        lines.append((str(members), *times, f"{cells['BatchEnsemble', members]['relative_parameters']:.2f}"))
    what = f"{result.labels['network']}, {result.record.run.settings['batch']} inputs, times one network's."
    return f"{markdown(('members', *kinds, 'BatchEnsemble, parameters'), lines)}\n\n{what} {where(evidence)}"


def _machines() -> list[Machine]:
    found: dict[tuple[str, int, str], dict[tuple[str, str, str], list[Row]]] = {}
    for record in sorted(speeds("speed"), key=lambda one: one["provenance"]["started"]):
        key = record["metrics"]["network"], record["run"]["settings"]["members"], made(record["provenance"])
        for row in record["metrics"]["rows"]:
            found.setdefault(key, {}).setdefault((row["case"], row["way"], row["denominator"]), []).append(row)
    machines = [
        Machine(f"{key[0]}, {key[1]} members", key[1], key[2], tuple(map(_middle, rows.values())))
        for key, rows in found.items()
    ]
    return sorted(machines, key=lambda machine: -len(machine.rows))


def _middle(rows: list[Row]) -> Row:
    """The median of every number of one case, and the least and the most of its ratio."""
    numbers = {name: [row[name] for row in rows if row[name] is not None] for name in NUMBERS}
    middle = {name: median(found) if found else None for name, found in numbers.items()}
    return {**rows[-1], **middle, "ratios": numbers["ratio"]}


def _network_table(machine: Machine) -> str:
    """Our time beside one network on the same inputs, and beside the plain network on as many rows."""
    single, over = machine.over(SINGLE), machine.over(LIMIT)
    rows = {case: row for case, row in over.items() if case.startswith(WHOLE)}
    columns = [machine.title, OURS, "one network", "ratio", "as many rows", "ratio"]
    cells = [[case, _ours(row), *_beside(single[case]), *_beside(row), _memory(row)] for case, row in rows.items()]
    return _table([*columns, "memory"], sorted(cells, key=lambda line: _by_size(line[0])), machine, rows.values())


def _layer_table(machine: Machine) -> str:
    rows = {case: row for case, row in machine.over(LIMIT).items() if not case.startswith(WHOLE)}
    columns = ["a layer (members x rows x width), or rows to members", OURS, "as many rows", "ratio", "memory"]
    cells = [[case, _ours(row), *_beside(row), _memory(row)] for case, row in rows.items()]
    return _table(columns, cells, machine, rows.values())


def _peer_table(machine: Machine) -> str:
    ways = dict.fromkeys(row["way"] for row in machine.rows if row["way"] in WAYS and row["way"] != OURS)
    cases = {case for way in ways for case in machine.over(LIMIT, way)}
    rows = [(case, way, machine.over(LIMIT, way)[case]) for way in (OURS, *ways) for case in machine.over(LIMIT, way)]
    rows = [row for row in rows if row[0] in cases]
    cells = [
        [case, way, _ratio(machine.over(SINGLE, way)[case]), _ratio(row), _memory(row)]
        for case, way, row in sorted(rows, key=lambda one: (_by_size(one[0]), list(WAYS).index(one[1])))
    ]
    columns = [machine.title, "method", "time over one network", "over as many rows", "memory"]
    return _table(columns, cells, machine, [row for *_, row in rows], labels=2)


def _words(machine: Machine) -> str:
    """Over one network: the least and the most of inference, and of a training step."""
    inference, training = (_over_one(machine, kind, OURS) for kind in WHOLE)
    apart = f", more than {machine.members} separate networks one after another"
    verdict = apart if _slower(machine, ONE_BY_ONE) else ""
    own_norms = _over_one(machine, "training", OWN_NORMS)
    also = f", with a norm for each member {_span(own_norms, 2)}" if own_norms else ""
    where = f"{machine.where.partition(',')[0]} ({how_run(machine.over(SINGLE).values())})"
    return (
        f"- {machine.title}, {where}: inference takes {_span(inference, 1)} times as long as one network{verdict}; "
        f"a training step {_span(training, 2)} times{also}."
    )


def _slower(machine: Machine, way: str) -> bool:
    """Whether inference takes us longer than another way, in every case that both were measured in."""
    ours, theirs = (machine.over(SINGLE, one) for one in (OURS, way))
    both = [case for case in ours if case.startswith(WHOLE[0]) and case in theirs]
    return bool(both) and all(ours[case]["ratio"] > theirs[case]["ratio"] for case in both)


def _over_one(machine: Machine, kind: str, way: str) -> list[float]:
    return [row["ratio"] for case, row in machine.over(SINGLE, way).items() if case.startswith(kind)]


def _span(numbers: list[float], digits: int) -> str:
    """The least and the most, once where they are the same."""
    return " to ".join(dict.fromkeys(f"{number:.{digits}f}" for number in (min(numbers), max(numbers))))


def _table(columns: list[str], cells: list[list[str]], machine: Machine, rows: Iterable[Row], labels: int = 1) -> str:
    """Nothing without rows; without a last column where it is empty: only a GPU counts memory. `labels` come first."""
    if not cells:
        return ""
    if not any(line[-1] for line in cells):
        columns, cells = columns[:-1], [line[:-1] for line in cells]
    return f"{markdown(columns, cells, labels=labels)}\n\nAll {how_run(rows)}. {machine.where}."


def _by_size(case: str) -> tuple[str, int]:
    """Inference before training, small before large."""
    kind, _, size = case.partition(", ")
    return kind, int(size.split()[0])


def _ours(row: Row) -> str:
    return f"{row['ms']:.2f} ms"


def _beside(row: Row) -> tuple[str, str]:
    return f"{row['denominator_ms']:.2f} ms", _ratio(row)


def _ratio(row: Row) -> str:
    """The median; how far it moved where it was measured more than once."""
    span = _span(row["ratios"], 2)
    return f"{row['ratio']:.2f} ({span})" if " to " in span else f"{row['ratio']:.2f}"


def _memory(row: Row) -> str:
    return f"{row['memory_ratio']:.2f}" if row["memory_ratio"] else ""
