"""`batchensemble bench`: it runs, writes and prints, and fails when a limit is exceeded. No clock is read."""

import json

import pytest
from typer.testing import CliRunner

from batchensemble import cli
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run
from batchensemble.lab.studies.speed import command, timing
from batchensemble.lab.studies.speed.cases import LIMIT, SINGLE, Settings
from batchensemble.lab.studies.speed.command import exceeded, layer_sizes, numbers, read_limits, read_settings, tables
from batchensemble.lab.studies.speed.ways import OURS, OWN_NORMS
from batchensemble.lab.studies.study import Study


@pytest.fixture
def bench(monkeypatch, tmp_path):
    monkeypatch.setattr(timing, "_on_cpu", lambda work: 2.0)
    monkeypatch.setattr(cli, "console", cli.Console(width=200))
    monkeypatch.chdir(tmp_path)
    quick = ["bench", "--quick", "--network", "mlp", "--device", "cpu"]
    return lambda *arguments: CliRunner().invoke(cli.app, [*quick, *arguments])


def test_it_prints_a_table_for_each_denominator_and_writes_the_record(bench, tmp_path):
    done = bench("--out", "here/speed.json")
    assert done.exit_code == 0, done.output
    for words in (f"over {LIMIT}", f"over {SINGLE}", "inference, 2 inputs", "routing, 8 rows to 6 members, mlp", OURS):
        assert words in done.output
    content = json.loads((tmp_path / "here" / "speed.json").read_text())
    assert Run(**content["run"]).scale == "smoke"
    assert content["provenance"]["versions"]["torch"]
    assert {row["denominator"] for row in content["metrics"]["rows"]} == {LIMIT, SINGLE}
    for name, reason in content["metrics"]["skipped"].items():
        assert f"{name}: not measured, {reason}" in done.output


def test_tables_are_whole_in_a_narrow_terminal(bench, monkeypatch):
    """Cases and ways on one line each; how all were run is said once."""
    monkeypatch.setattr(cli, "console", cli.Console(width=80))
    lines = [line.strip() for line in bench("--network", "resnet14").output.splitlines()]
    for case in ("inference, 2 inputs", "training step, 8 rows", "routing, 8 rows to 6 members, resnet14"):
        assert case in lines
    assert any(line.startswith(OWN_NORMS) and line.split()[-3:] == ["2.000", "2.000", "1.00"] for line in lines)
    assert f"ResNet-14, 4 members, over {LIMIT}" in lines
    assert sum("All eager, in float32." in line for line in lines) == 2
    assert max(map(len, lines)) <= 80


def test_ways_that_were_run_otherwise_are_named():
    """Here one way could not be compiled."""
    row = {"case": "a", "way": OURS, "how": "compiled", "denominator": LIMIT, "ms": 2.0, "denominator_ms": 1.0}
    row |= {"mib": None, "ratio": 2.0, "memory_ratio": None}
    rows = [row, {**row, "way": "tabm", "how": "eager"}]
    settings = {"members": 4}
    record = Record(Run("speed", settings, "smoke"), {"network": "MLP", "rows": rows}, Provenance.now())
    (table,) = tables(record)
    assert [column.header for column in table.columns] == ["", "run", "ms", "plain, ms", "ratio"]
    assert "All compiled or eager, in float32." in str(table.caption)


def test_limits_that_are_kept_and_that_are_not(bench):
    only = ["--only", "training step", "--rows", "4,8"]
    assert bench(*only, "--limit", "training step, 8 rows=1.0").exit_code == 0
    failed = bench(*only, "--limit", "training step, 8 rows=0.99", "--limit", "training step, 4 rows=1.5")
    assert failed.exit_code == 1
    assert f"training step, 8 rows: 1.000 times {LIMIT}, more than 0.99" in failed.output
    assert "training step, 4 rows:" not in failed.output
    unknown = bench(*only, "--limit", "memory of training step, 8 rows=2")
    assert unknown.exit_code == 1
    assert "not measured" in unknown.output


def test_a_limit_of_nothing_is_refused_before_anything_is_measured(bench, tmp_path):
    failed = bench("--limit", "training step, 9 rows=1.1")
    assert failed.exit_code == 1
    assert "the cases are 'inference, 2 inputs', 'training step, 8 rows'" in failed.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("out", ["/dev/null/speed.json", "/proc/speed.json"])
def test_what_cannot_be_written_is_not_measured(bench, monkeypatch, out):
    """There is no such folder, or it is there and takes no files."""
    monkeypatch.setattr(command, "SPEED", Study("speed", lambda *_: pytest.fail("measured")))
    failed = bench("--out", out)
    assert (failed.exit_code, failed.stderr[:7]) == (1, "error: ")


def test_a_measurement_that_fails_leaves_the_record_that_is_there(bench, monkeypatch, tmp_path):
    def fails(run, context):
        raise ValueError("nothing to measure")

    (tmp_path / "speed.json").write_text("{}")
    monkeypatch.setattr(command, "SPEED", Study("speed", fails))
    assert bench().exit_code == 1
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("speed.json", "{}")]


@pytest.mark.parametrize("text", ["inference, 8 inputs", "inference, 8 inputs=fast", "=1.0"])
def test_limits_have_a_case_and_a_number(text):
    with pytest.raises(ValueError, match="a limit is CASE=RATIO"):
        read_limits([text], Settings())


def test_only_our_ratio_to_the_limit_counts():
    row = {"case": "a", "way": OURS, "denominator": LIMIT, "ratio": 1.2, "memory_ratio": 1.5}
    rows = [row, {**row, "way": "tabm", "ratio": 9.0}, {**row, "denominator": SINGLE, "ratio": 4.0}]
    assert list(exceeded(rows, {"a": 1.2, "memory of a": 1.5})) == []
    assert [text.partition(":")[0] for text in exceeded(rows, {"a": 1.19, "memory of a": 1.49})] == ["a", "memory of a"]
    assert "not measured" in next(exceeded([], {"a": 2.0}))


def test_options_change_the_settings_they_name():
    assert read_settings(False, network=None, inputs=None) == Settings()
    changed = read_settings(False, network="mlp", inputs="3", rows="", layers="", compiled=False, only=["a"])
    assert changed == Settings("mlp", inputs=(3,), rows=(), layers=(), compiled=False, only=("a",))
    with pytest.raises(ValueError, match="numbers like 8,128; got '8;9'"):
        numbers("8;9")
    with pytest.raises(ValueError, match="MEMBERSxROWSxWIDTH"):
        layer_sizes("4x16")
