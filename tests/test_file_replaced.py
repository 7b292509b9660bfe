"""A file that another process replaces again and again is the old one or the new one to whoever reads it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from ensembles import ensemble, mlp
from safetensors import safe_open
from torch import nn

import batchensemble as be
from batchensemble import files

SAVES = """
import sys, torch, batchensemble as be
models = [be.convert(torch.nn.Linear(30, 30), members, combine="mean") for members in (2, 3)]
with torch.no_grad():
    for model in models:
        for parameter in model.parameters():
            parameter.fill_(float(len(model)))
for _ in range(500):
    for model in models:
        model.save(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a file that is being read cannot be replaced")
def test_whoever_reads_a_file_that_is_being_replaced_finds_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    path, found = tmp_path / "model", set()
    with subprocess.Popen([sys.executable, "-c", SAVES, str(path)]) as writer:
        while writer.poll() is None:
            if path.exists():
                model = be.load(path, nn.Linear(30, 30))
                found.add((len(model), *{value for p in model.parameters() for value in p.unique().tolist()}))
    assert writer.returncode == 0
    assert found == {(2, 2.0), (3, 3.0)}


def test_a_file_replaced_between_header_and_tensors_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other, opened = tmp_path / "model", ensemble(), 0
    ensemble().save(path)
    other.add_members(1)

    @contextmanager
    def opened_twice(path: Path, framework: str) -> Iterator[SimpleNamespace]:  # as safetensors does it
        nonlocal opened
        opened += 1
        with safe_open(path, framework) as file:
            metadata = file.metadata()
        if opened == 1:
            other.save(path)
        with safe_open(path, framework) as file:
            yield SimpleNamespace(metadata=lambda: metadata, keys=file.keys, get_tensor=file.get_tensor)

    monkeypatch.setattr(files, "safe_open", opened_twice)
    assert len(be.load(path, mlp())) == len(other)
    assert opened == 2
