"""Every Python block of the README and of the docs runs, top to bottom, one namespace per page.

A block after the line `<!-- not run: reason -->` is only compiled. Where a page says what a line prints,
`print(...)  # 0.97: what it is`, that is what it prints, give or take a little, since random numbers differ by version.
The same goes for first words, `print(...)  # An ensemble: ...`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import batchensemble as be
from batchensemble.lab.methods.ensembles import METHODS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^\n]+ -->\n+)?^(?P<indent> *)```python[^\n]*\n(?P<code>.*?)^(?P=indent)```",
    re.M | re.S,
)
PRINTED = re.compile(r"^print\((?P<shown>.+)\) +# (?P<number>\d+\.\d+)", re.M)
BEGINS = re.compile(r"^print\((?P<shown>.+)\) +# (?P<words>[A-Z][\w ]*:)", re.M)
A_LITTLE = 0.03


def blocks(text: str) -> list[tuple[int, str, bool]]:
    """(line of the first statement, source, whether it is run) of every Python block."""
    found = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        code = re.sub(rf"^{match['indent']}", "", match["code"], flags=re.M)
        found.append((line, code, match["skip"] is None))
    return found


def test_blocks_are_found() -> None:
    plain, skipped = "```python\nx = 1\n```\n", "<!-- not run: slow -->\n```python\ny\n```\n"
    page = "a\n" + plain + skipped + "=== tab\n    ```python\n    z = 2\n    ```\n"
    assert blocks(page) == [(3, "x = 1\n", True), (7, "y\n", False), (11, "z = 2\n", True)]


@pytest.fixture
def _methods_as_before() -> Iterator[None]:
    """A page may add a method to the laboratory; other tests should not meet it."""
    before = dict(METHODS)
    yield
    METHODS.clear()
    METHODS.update(before)


@pytest.mark.usefixtures("_methods_as_before")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(page: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    namespace = {"__name__": "page"}
    for line, code, runs in blocks(page.read_text()):
        compiled = compile("\n" * (line - 1) + code, str(page), "exec")  # errors point into the page
        if runs:
            exec(compiled, namespace)
            for match in PRINTED.finditer(code):
                assert float(eval(match["shown"], namespace)) == pytest.approx(float(match["number"]), abs=A_LITTLE)
            for match in BEGINS.finditer(code):
                assert str(eval(match["shown"], namespace)).startswith(match["words"])
    if page.name == "README.md":
        assert namespace["report"].verdict in page.read_text()


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    documented = set(re.findall(r"^::: batchensemble\.(?:\w+\.)*(\w+)$", page, re.M))
    public = {*be.__all__, *be.nn.__all__, *be.lifelong.__all__, *be.bandits.__all__}
    public -= {"nn", "convert_", "TaskData"}  # a room, the verb behind `convert`, and a type that has no page
    assert documented >= public
