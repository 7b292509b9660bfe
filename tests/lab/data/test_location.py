from pathlib import Path

from batchensemble.lab.data import data_root


def test_argument_goes_before_variable_goes_before_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("BATCHENSEMBLE_DATA", str(tmp_path))
    assert data_root("given") == Path("given")
    assert data_root() == tmp_path
    monkeypatch.delenv("BATCHENSEMBLE_DATA")
    assert data_root().name == "batchensemble"
    assert data_root("~/here") == Path.home() / "here"
