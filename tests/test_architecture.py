"""The house keeps its order: who imports whom, how long a file is, how fast the library opens."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "batchensemble"
FILES = sorted(PACKAGE.rglob("*.py"))

# What each room may import; lab rooms may import the whole library as well.
LIBRARY: dict[str, set[str]] = {
    "nn": set(),
    "metrics": set(),
    "prediction": set(),
    "disk": set(),
    "locks": set(),
    "seeds": set(),
    "extras": set(),
    "files": {"nn", "disk"},
    "checkpoint": {"disk"},
    "ensemble": {"nn", "prediction", "files"},
}
BESIDE_THE_ENSEMBLE = {"ensemble", "metrics", *LIBRARY["ensemble"]}
LIBRARY |= dict.fromkeys(("optim", "diagnosis"), BESIDE_THE_ENSEMBLE)
LIBRARY["generate"] = {"extras", *BESIDE_THE_ENSEMBLE}
LIBRARY["export"] = {"extras", "disk", *BESIDE_THE_ENSEMBLE}
LIBRARY |= {room: set(LIBRARY) for room in ("lifelong", "bandits")}
PLAIN_LAB = {"lab.data", "lab.models", "lab.records"}
LAB: dict[str, set[str]] = {
    **{room: set() for room in PLAIN_LAB},
    "lab.methods": {"lab.models"},
    "lab.training": set(),
    "lab.studies": {*PLAIN_LAB, "lab.methods", "lab.training"},
    "lab.report": {"lab.records"},
    "lab.experiments": {"lab.studies", "lab.methods", "lab.report", "lab.records"},
}
FRONT_DOOR = "batchensemble"
FOUNDATION = {FRONT_DOOR, *LIBRARY}  # what every room of the laboratory may stand on
ROOMS = LIBRARY | {room: allowed | FOUNDATION for room, allowed in LAB.items()}
ROOMS["cli"] = {FRONT_DOOR, *ROOMS}
# Files that share a room: the command line and its options; exports and their inputs; records, where they come from
# and where they are kept.
ONE_ROOM = {
    "__main__": "cli",
    "options": "cli",
    "export_inputs": "export",
    "lab.provenance": "lab.records",
    "lab.store": "lab.records",
}
DOORS = {FRONT_DOOR, "lab"}  # the two __init__ files that only hand out names
HEAVY = (
    "matplotlib",
    "sklearn",
    "scipy",
    "transformers",
    "lightning_fabric",
    "lightning",
    "pandas",
    "rich",
    "typer",
)


def room_of(module: str) -> str:
    """The room of a dotted name: batchensemble.lab.data.text is in lab.data, batchensemble.Prediction at the door."""
    parts = module.split(".")[1:]
    if not parts or not any((PACKAGE / f"{parts[0]}{end}").exists() for end in ("", ".py")):
        return FRONT_DOOR
    name = ".".join(parts[:2] if parts[0] == "lab" else parts[:1])
    return ONE_ROOM.get(name, name)


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, source: str | None = None) -> Iterator[str]:
    """Dotted names of ours that a file imports, also inside functions and under TYPE_CHECKING."""
    package = module_of(path).split(".")
    package = package if path.name == "__init__.py" else package[:-1]
    for node in ast.walk(ast.parse(source or path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "batchensemble")
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            target = ".".join([*start, *(node.module or "").split(".")]).strip(".")
            if target.split(".")[0] == "batchensemble":
                yield from (f"{target}.{alias.name}" for alias in node.names)


def test_the_reader_of_imports_sees_all_forms() -> None:
    source = (
        "import torch, batchensemble.nn\nfrom batchensemble import files, Prediction\n"
        "def f():\n from ..records import Run\n from . import scores\n from ...metrics.shift import x\n"
    )
    rooms = [room_of(name) for name in imported(PACKAGE / "lab" / "studies" / "new.py", source)]
    assert rooms == ["nn", "files", FRONT_DOOR, "lab.records", "lab.studies", "metrics"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_who_imports_whom(path: Path) -> None:
    here = room_of(module_of(path))
    if here in DOORS:
        return
    assert here in ROOMS, f"{here} is not a room of the house; docs/architecture.md names them all"
    foreign = {name for name in imported(path) if room_of(name) not in ROOMS[here] | {here}}
    assert not foreign, f"{here} may import {sorted(ROOMS[here])}, not {sorted(foreign)}"


def test_no_two_files_import_each_other() -> None:
    modules = {module_of(path): path for path in FILES if path.name != "__init__.py"}
    graph = {}
    for module, path in modules.items():
        parents = {name.rpartition(".")[0] for name in imported(path)}
        graph[module] = (parents | set(imported(path))) & modules.keys()
    assert len(list(TopologicalSorter(graph).static_order())) == len(modules)  # a circle raises CycleError


@pytest.mark.parametrize("room", ["nn", "ensemble", "diagnosis", "lifelong", "bandits"])
def test_the_page_says_what_is_in_every_file(room: str) -> None:
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text()
    section = page.partition(f"### Inside {room}\n")[2].partition("\n#")[0]
    paths = {path for path in (PACKAGE / room).rglob("*.py") if path.name != "__init__.py"}
    files = {path.relative_to(PACKAGE / room).as_posix() for path in paths}
    assert set(re.findall(r"^  ([\w/]+\.py) ", section, re.MULTILINE)) == files


@pytest.mark.parametrize(
    ("room", "words"),
    [("disk.py", ("mkstemp", "os.replace", "beside.replace", '.part"')), ("locks.py", ("fcntl", "msvcrt", "filelock"))],
)
def test_one_room_replaces_files_and_one_locks_them(room: str, words: tuple[str, ...]) -> None:
    """How a file is replaced whole is written once, and so is how a process keeps others away."""
    assert [path for path in FILES if any(word in path.read_text() for word in words)] == [PACKAGE / room]


def test_one_room_reads_and_writes_checkpoints() -> None:
    """Whether a checkpoint is damaged is asked once."""
    words = ("    torch.save(", "(torch.load(", " torch.load(")
    assert [path for path in FILES if any(word in path.read_text() for word in words)] == [PACKAGE / "checkpoint.py"]


def test_the_front_door_opens_no_laboratory() -> None:
    assert not [name for name in imported(PACKAGE / "__init__.py") if room_of(name).startswith(("lab", "cli"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    source = path.read_text()
    assert source.count("\n") <= 400
    assert path.stem not in {"utils", "util", "helpers", "helper", "common", "misc", "base"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert length(node) <= 40, f"{node.name} in {path.name} has {length(node)} lines"


def test_docstrings_name_what_a_function_returns() -> None:
    assert [path for path in FILES if re.search(r'^ *r?"""Returns?\b', path.read_text(), re.MULTILINE)] == []


def test_files_of_tests_stay_small() -> None:
    tests = Path(__file__).parent
    assert [path for path in tests.rglob("*.py") if path.read_text().count("\n") > 400] == []


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_opening_the_library_brings_no_heavy_package() -> None:
    loaded = run("import sys, batchensemble; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert "torch" in loaded
    assert not set(HEAVY) & set(loaded)


def test_every_public_room_is_behind_the_front_door() -> None:
    code = "import batchensemble as be; print(be.bandits.ThompsonSampler.__name__, be.lifelong.Learner.__name__)"
    assert run(code) == "ThompsonSampler Learner"


def test_the_front_door_shows_what_is_public_and_so_do_the_rooms_behind_it() -> None:
    doors = "(be, be.nn, be.metrics, be.lifelong, be.bandits)"
    assert run(f"import batchensemble as be; print(all(dir(d) == sorted(d.__all__) for d in {doors}))") == "True"


def test_opening_the_library_takes_little_more_than_opening_torch() -> None:
    clock = "import time, torch; t = time.perf_counter(); import batchensemble; print(time.perf_counter() - t)"
    assert min(float(run(clock)) for _ in range(2)) < 0.5


def test_a_source_distribution_holds_no_records() -> None:
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    assert "src" in included
    assert not {"results", "tests"} & set(included)
