"""What we use of torch that is not public: where a release of torch lacks it, these tests fail first, and name it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import pytest
import torch

PACKAGE = Path(__file__).parents[1] / "src" / "batchensemble"


def names_of_torch(source: str) -> Iterator[str]:
    """Every dotted name under `torch` that a file imports or writes out; `nn` is `torch.nn`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            yield f"torch.{name}" if name.startswith("nn.") else name
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_internal(name: str) -> bool:
    parts = name.split(".")
    return parts[0] == "torch" and all(map(str.isidentifier, parts)) and any(part[0] == "_" for part in parts)


INTERNAL = sorted({name for path in PACKAGE.rglob("*.py") for name in names_of_torch(path.read_text())})
INTERNAL = [name for name in INTERNAL if is_internal(name)]


def test_the_reader_of_names_sees_all_forms() -> None:
    source = "from torch._a import b\nif torch._C.d().e: nn.modules._F(torch.nn.Linear)"
    assert {name for name in names_of_torch(source) if is_internal(name)} == {
        "torch._a.b",
        "torch._C.d",
        "torch._C",
        "torch.nn.modules._F",
    }


@pytest.mark.parametrize("name", INTERNAL)
def test_torch_has_it(name: str) -> None:
    if "_cuda" in name and not torch.backends.cuda.is_built():
        pytest.skip("this torch was built without CUDA")
    resolve_name(name)  # raises ImportError or AttributeError
