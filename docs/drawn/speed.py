"""Our time over that of plain networks: records of `batchensemble bench`."""

from typing import Any

from drawn.records import evidence_of, made, speeds, where

LIMIT = "the plain network on as many rows"
SINGLE = "one network on the same inputs"
WHOLE = ("inference", "training")


def speed_network() -> str:
    """A whole network's time beside both denominators, a table for every machine."""
    return "\n\n".join(filter(None, (_network_of(record) for record in speeds("speed"))))


def speed_words() -> str:
    """What members cost over one network, a sentence for every machine."""
    return "\n".join(filter(None, (_words_of(record) for record in speeds("speed"))))


def speed() -> str:
    """Layers alone, and rows that choose among many members."""
    return "\n\n".join(filter(None, (_layers_of(record) for record in speeds("speed"))))


def speed_peers() -> str:
    """Other ways to have as many members, each over the limit of its own run."""
    records = speeds("speed")
    ours = {(record["provenance"]["hardware"], row["case"]): row for record in records for row in _over(record)}
    found = [(record, row) for record in records for row in _over(record, ours=False)]
    lines = ["| over the plain network on as many rows | time | memory |", "|---|---|---|"]
    for record, row in found:
        us = ours[record["provenance"]["hardware"], row["case"]]
        lines.append(
            f"| {row['case']}: {row['way']} (ours) | {row['ratio']:.2f} ({us['ratio']:.2f}) "
            f"| {row['memory_ratio']:.2f} ({us['memory_ratio']:.2f}) |"
        )
    how = " or ".join(dict.fromkeys(row["how"] for _, row in found))
    where = "; ".join(dict.fromkeys(made(record["provenance"]) for record, _ in found))
    return "\n".join([*lines, "", f"Both {how}. {where}."])


def cost_by_members() -> str:
    """Test time and parameters of ever more members, over one network, on a CPU."""
    evidence = evidence_of("cost", "small")
    (result,) = evidence.results
    rows = result.record.metrics["cost"]
    kinds = tuple(dict.fromkeys(row["kind"] for row in rows))
    cells = {(row["kind"], row["members"]): row for row in rows}
    lines = [f"| members | {' | '.join(kinds)} | BatchEnsemble, parameters |", "|---" * (len(kinds) + 2) + "|"]
    for members in dict.fromkeys(row["members"] for row in rows):
        times = " | ".join(f"{cells[kind, members]['relative_seconds']:.1f}" for kind in kinds)
        lines.append(f"| {members} | {times} | {cells['BatchEnsemble', members]['relative_parameters']:.2f} |")
    what = f"{result.labels['network']}, {result.record.run.settings['batch']} inputs, times one network's."
    return "\n".join([*lines, "", f"{what} {where(evidence)}"])


def _network_of(record: dict[str, Any]) -> str:
    """Our time beside one network on the same inputs, and beside the plain network on as many rows."""
    over = [row for row in _over(record) if row["case"].startswith(WHOLE)]
    if not over:
        return ""
    single = _over_one(record)
    title = f"{record['metrics']['network']}, {record['run']['settings']['members']} members"
    columns = [title, "ours", "one network", "ratio", "as many rows", "ratio"]
    lines = [*_header([*columns, *_memory_heading(over)])]
    for row in over:
        one = single[row["case"]]
        times = f"{row['ms']:.2f} ms | {_beside(one)} | {_beside(row)}"
        lines.append(f"| {row['case']} | {times} |{_memory(row)}")
    return "\n".join([*lines, "", _how(record, over)])


def _words_of(record: dict[str, Any]) -> str:
    """Over one network: the least and the most of inference, and of a training step."""
    single = _over_one(record)
    ratios = {kind: [row["ratio"] for case, row in single.items() if case.startswith(kind)] for kind in WHOLE}
    if not all(ratios.values()):
        return ""
    members = record["run"]["settings"]["members"]
    inference, training = (_span(found, digits) for found, digits in zip(ratios.values(), (1, 2), strict=True))
    least = min(ratios["inference"])
    verdict = f", more than {members} separate networks one after another" if least > members else ""
    return (
        f"- {record['provenance']['hardware']}, {record['metrics']['network']}, {members} members: inference takes "
        f"{inference} times as long as one network{verdict}; a training step {training} times."
    )


def _span(numbers: list[float], digits: int) -> str:
    """The least and the most, once where they are the same.

    >>> _span([1.0, 2.04], 1), _span([1.5], 2)
    ('1.0 to 2.0', '1.50')
    """
    return " to ".join(dict.fromkeys(f"{number:.{digits}f}" for number in (min(numbers), max(numbers))))


def _layers_of(record: dict[str, Any]) -> str:
    over = [row for row in _over(record) if not row["case"].startswith(WHOLE)]
    if not over:
        return ""
    columns = ["a layer (members x rows x width), or rows to members", "ours", "as many rows", "ratio"]
    lines = [*_header([*columns, *_memory_heading(over)])]
    lines += [f"| {row['case']} | {row['ms']:.2f} ms | {_beside(row)} |{_memory(row)}" for row in over]
    return "\n".join([*lines, "", _how(record, over)])


def _header(columns: list[str]) -> tuple[str, str]:
    return f"| {' | '.join(columns)} |", "|---" + "|---:" * (len(columns) - 1) + "|"


def _beside(row: dict[str, Any]) -> str:
    return f"{row['denominator_ms']:.2f} ms | {row['ratio']:.2f}"


def _memory_heading(rows: list[dict[str, Any]]) -> list[str]:
    return ["memory"] if rows[0]["memory_ratio"] else []


def _memory(row: dict[str, Any]) -> str:
    return f" {row['memory_ratio']:.2f} |" if row["memory_ratio"] else ""  # only a GPU counts it


def _how(record: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    how = " or ".join(dict.fromkeys(row["denominator_how"] for row in rows))
    return f"All {how}. {made(record['provenance'])}."


def _over(record: dict[str, Any], *, ours: bool = True) -> list[dict[str, Any]]:
    """Rows over the plain network on as many rows."""
    rows = record["metrics"]["rows"]
    return [row for row in rows if row["denominator"] == LIMIT and (row["way"] == "BatchEnsemble") is ours]


def _over_one(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Our rows over one network, by case; a training step shows both the same rows, so both denominators are one."""
    same = {row["case"]: row for row in _over(record) if row["case"].startswith("training")}
    rows = (row for row in record["metrics"]["rows"] if row["way"] == "BatchEnsemble")
    return same | {row["case"]: row for row in rows if row["denominator"] == SINGLE}
