"""`batchensemble bench`: turns options into a run and its record into tables, and checks limits."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from batchensemble.disk import check_writable, written_whole
from batchensemble.lab.records import Record, Run, Scale
from batchensemble.lab.store import document
from batchensemble.lab.studies.speed.cases import LIMIT, QUICK, SINGLE, Settings, cases
from batchensemble.lab.studies.speed.study import SPEED
from batchensemble.lab.studies.speed.ways import OURS
from batchensemble.lab.studies.study import Context

if TYPE_CHECKING:
    from rich.table import Table

MEMORY = "memory of "
WHAT = {LIMIT: "In inference, that is members x inputs.", SINGLE: ""}
BELOW = {LIMIT: "plain, ms", SINGLE: "one network, ms"}
WIDTH = 76  # of a table, at least: titles stay on one line, also in a terminal of 80 columns
Row = Mapping[str, Any]
"""A case, a way and a denominator, with their times: an entry of a record's `rows`."""


def read_settings(quick: bool, **options: Any) -> Settings:
    """The default or the quick settings, changed by the options that are not `None`; lists are given as text.

    Examples:
        >>> read_settings(True, members=2, rows="6,8", network=None).rows
        (6, 8)
    """
    read: dict[str, Callable[[Any], Any]] = {"inputs": numbers, "rows": numbers, "layers": layer_sizes}
    read |= {"only": tuple, "ways": tuple}
    given = {name: value for name, value in options.items() if value is not None}
    return replace(
        QUICK if quick else Settings(),
        **{name: read[name](value) if name in read else value for name, value in given.items()},
    )


def measured(settings: Settings, quick: bool, context: Context, out: Path) -> Record:
    """Measure, and write the record to a file; the scale keeps a quick one from passing for the paper's network."""
    if out.is_dir():
        raise IsADirectoryError(f"{out} is a folder: --out names the file of the record")
    check_writable(out)  # now rather than after minutes of measuring
    scale: Scale = "smoke" if quick else "paper" if settings.network == "resnet32x4" else "small"
    record = SPEED.run(Run(SPEED.name, settings, scale), context)
    with written_whole(out) as beside:
        beside.write_text(json.dumps(document(record), indent=1) + "\n")
    return record


def numbers(text: str) -> tuple[int, ...]:
    """Parse numbers such as `8,128`; an empty text gives none.

    Examples:
        >>> numbers("8,128"), numbers("")
        ((8, 128), ())
    """
    try:
        return tuple(int(part) for part in text.split(",") if part)
    except ValueError:
        raise ValueError(f"expected numbers like 8,128; got {text!r}") from None


def layer_sizes(text: str) -> tuple[tuple[int, int, int], ...]:
    """Parse `4x4096x1024` as members, rows of each and width; several are separated by commas.

    Examples:
        >>> layer_sizes("4x16x8,2x4x4")
        ((4, 16, 8), (2, 4, 4))
    """
    found = [numbers(part.replace("x", ",")) for part in text.split(",") if part]
    if any(len(layer) != 3 for layer in found):
        raise ValueError(f"expected layers as MEMBERSxROWSxWIDTH, such as 4x4096x1024; got {text!r}")
    return tuple((members, rows, width) for members, rows, width in found)


def read_limits(texts: Sequence[str], settings: Settings) -> dict[str, float]:
    """Parse `CASE=RATIO` for time and `memory of CASE=RATIO` for memory, before anything is measured.

    Raises:
        ValueError: there is no such case, or the ratio is not a number.

    Examples:
        >>> read_limits(["training step, 128 rows=1.1"], Settings())
        {'training step, 128 rows': 1.1}
    """
    known = [case.name for case in cases(settings, torch.device("cpu"))]
    limits = {}
    for text in texts:
        name, _, ratio = text.rpartition("=")
        if name.removeprefix(MEMORY) not in known:
            raise ValueError(f"a limit is CASE=RATIO, got {text!r}; the cases are {', '.join(map(repr, known))}")
        try:
            limits[name] = float(ratio)
        except ValueError:
            raise ValueError(f"a limit is CASE=RATIO with a number, got {text!r}") from None
    return limits


def exceeded(rows: Sequence[Row], limits: Mapping[str, float]) -> Iterator[str]:
    """Describe every limit that our ratio to the plain network on as many rows exceeds.

    Examples:
        >>> row = {"case": "inference", "way": OURS, "denominator": LIMIT, "ratio": 1.2, "memory_ratio": None}
        >>> list(exceeded([row], {"inference": 1.1}))
        ['inference: 1.200 times the plain network on as many rows, more than 1.1']
        >>> list(exceeded([row], {"inference": 1.2}))
        []
    """
    ours = {row["case"]: row for row in rows if row["way"] == OURS and row["denominator"] == LIMIT}
    for name, limit in limits.items():
        case, metric = name.removeprefix(MEMORY), ("memory_ratio" if name.startswith(MEMORY) else "ratio")
        found = ours[case][metric] if case in ours else None
        if found is None:
            why = ", memory is on a GPU only" if case in ours else ""
            yield f"{name}: not measured{why}; drop this --limit"
        elif found > limit:
            yield f"{name}: {found:.3f} times {LIMIT}, more than {limit}"


def tables(record: Record) -> Iterator["Table"]:
    """A table for every denominator, named in its title: a line for every case, and below it one for every way.

    Memory is shown if it was measured, and how a way was run if not all were run alike; else the caption says it.
    """
    from rich.box import SIMPLE
    from rich.table import Table

    rows = record.metrics["rows"]
    for denominator in dict.fromkeys(row["denominator"] for row in rows):
        table = Table(title=_title(record, denominator), box=SIMPLE, pad_edge=False, min_width=WIDTH)
        table.caption = _caption(record, denominator)
        table.title_justify = table.caption_justify = "left"
        columns = _columns(rows, denominator)
        table.add_column("", no_wrap=True)
        for heading in columns:
            table.add_column(heading, justify="right", no_wrap=True)
        case = ""
        for row in (row for row in rows if row["denominator"] == denominator):
            if row["case"] != case:
                table.add_row(case := row["case"])
            table.add_row(f"  {row['way']}", *(text(row) for text in columns.values()))
        yield table


def how_run(rows: Iterable[Row]) -> str:
    """Say how work was run, and in which precision: bfloat16 on a GPU, where alone there are graphs and memory.

    Examples:
        >>> how_run([{"how": "compiled, as a CUDA graph", "mib": 512.0}])
        'compiled, as a CUDA graph, in bfloat16'
        >>> how_run([{"how": "eager", "mib": None}, {"how": "compiled", "mib": None}])
        'eager or compiled, in float32'
    """
    rows = list(rows)
    precision = "bfloat16" if any("CUDA" in row["how"] or row["mib"] is not None for row in rows) else "float32"
    return f"{' or '.join(dict.fromkeys(row['how'] for row in rows))}, in {precision}"


def _columns(rows: Sequence[Row], denominator: str) -> dict[str, Callable[[Row], str]]:
    """How to write a row's numbers, by heading."""
    columns = {"ms": _milliseconds("ms"), BELOW[denominator]: _milliseconds("denominator_ms"), "ratio": _ratio("ratio")}
    columns |= {"memory ratio": _ratio("memory_ratio")} if any(row["memory_ratio"] for row in rows) else {}
    alike = len({row["how"] for row in rows}) == 1
    return columns if alike else {"run": lambda row: str(row["how"]), **columns}


def _milliseconds(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row[name]:.3f}"


def _ratio(name: str) -> Callable[[Row], str]:
    return lambda row: "" if row[name] is None else f"{row[name]:.2f}"


def _title(record: Record, denominator: str) -> str:
    return f"{record.metrics['network']}, {record.run.settings['members']} members, over {denominator}"


def _caption(record: Record, denominator: str) -> str:
    made = record.provenance
    commit = f"commit {made.commit or 'unknown'}{', changed' if made.dirty else ''}"
    how = f"All {how_run(record.metrics['rows'])}. {made.hardware}, torch {made.versions['torch']}, {commit}."
    return f"{WHAT[denominator]} {how}".lstrip()
