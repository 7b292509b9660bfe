"""Our time over the limit: records of `batchensemble bench`."""

from typing import Any

from drawn.records import evidence_of, made, speeds, where

LIMIT = "the plain network on as many rows"


def speed_network() -> str:
    """Our time over the limit for a whole network, a table for every machine."""
    return "\n\n".join(filter(None, (_speed_of(record, "inference", "training") for record in speeds("speed"))))


def speed() -> str:
    """The same, then for layers alone and for rows that choose among many members."""
    kinds = ("inference", "training"), ("Linear", "routing")
    return "\n\n".join(filter(None, (_speed_of(record, *kind) for record in speeds("speed") for kind in kinds)))


def speed_peers() -> str:
    """Other ways to have as many members, each over the limit of its own run."""
    records = speeds("speed")
    ours = {
        (record["provenance"]["hardware"], row["case"]): row for record in records for row in _over_the_limit(record)
    }
    found = [(record, row) for record in records for row in _over_the_limit(record, ours=False)]
    lines = ["| over the limit | time | memory |", "|---|---|---|"]
    for record, row in found:
        us = ours[record["provenance"]["hardware"], row["case"]]
        lines.append(
            f"| {row['case']}: {row['way']} (ours) | {row['ratio']:.2f} ({us['ratio']:.2f}) "
            f"| {row['memory_ratio']:.2f} ({us['memory_ratio']:.2f}) |"
        )
    how = " or ".join(dict.fromkeys(row["how"] for _, row in found))
    where = "; ".join(dict.fromkeys(made(record["provenance"]) for record, _ in found))
    return "\n".join([*lines, "", f"The limit is {LIMIT} (inference: members x inputs); both {how}. {where}."])


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


def _speed_of(record: dict[str, Any], *kinds: str) -> str:
    """A table of the cases whose names begin so; what it is a table of when those are whole networks."""
    over = [row for row in _over_the_limit(record) if row["case"].startswith(kinds)]
    if not over:
        return ""
    whole = f"{record['metrics']['network']}, {record['run']['settings']['members']} members"
    title = whole if "training" in kinds else "a layer (members x rows x width), or rows to members"
    columns = [title, "the limit", "ours", "ratio", *(["memory"] if over[0]["memory_ratio"] else [])]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in over:
        times = f"{row['denominator_ms']:.2f} ms | {row['ms']:.2f} ms | {row['ratio']:.2f}"
        memory = f" {row['memory_ratio']:.2f} |" if row["memory_ratio"] else ""  # only a GPU counts it
        lines.append(f"| {row['case']} | {times} |{memory}")
    how = " or ".join(dict.fromkeys(row["denominator_how"] for row in over))
    limit = f"The limit is {LIMIT}, {how}: in inference members x inputs, since every member answers each input."
    return "\n".join([*lines, "", f"{limit} {made(record['provenance'])}."])


def _over_the_limit(record: dict[str, Any], *, ours: bool = True) -> list[dict[str, Any]]:
    rows = record["metrics"]["rows"]
    return [row for row in rows if row["denominator"] == LIMIT and (row["way"] == "BatchEnsemble") is ours]
