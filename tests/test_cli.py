"""The command line: what it says, and what it says when something is wrong."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from threading import Thread

import pytest
from rich.console import Console
from typer.testing import CliRunner

import batchensemble as be
from batchensemble import cli
from batchensemble.extras import how_to_install
from batchensemble.lab.experiments import EXPERIMENTS, Experiment, Grid, Row
from batchensemble.lab.experiments.digits import DIGITS, NOISE
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run
from batchensemble.lab.report.views import comparison
from batchensemble.lab.store import Store
from batchensemble.lab.studies.perform import BUSY
from batchensemble.lab.studies.study import Study
from batchensemble.lifelong import Diverged
from batchensemble.locks import locked

FULL = "the disk is full"


def count(run, context):
    if run.settings["to"] < 0:
        raise OSError(FULL)
    return Record(run, {"accuracy": run.settings["to"] / 10, "training_seconds": 1.0}, Provenance.now(), {})


STUDY = Study("counting", count)
COUNTING = Experiment(
    "counting", "Table of numbers", "It counts.", STUDY,
    {"smoke": Grid((Row({"method": "up"}, {"to": 3}), Row({"method": "far"}, {"to": 9})))},
    show=(comparison("accuracy", title="Accuracy of counting"),),
)  # fmt: skip
FAILING = Experiment("failing", "Table", "It fails.", STUDY, {"smoke": Grid((Row({"method": "down"}, {"to": -1}),))})


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "EXPERIMENTS", {"counting": COUNTING, "failing": FAILING})
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.app, arguments)


def test_it_tells_its_version():
    done = CliRunner().invoke(cli.app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"batchensemble {be.__version__}\n")


def test_list_shows_every_experiment_and_what_is_done():
    shown = CliRunner().invoke(cli.app, ["list", "--results", "nowhere"]).output
    assert all(name in shown for name in EXPERIMENTS)


def test_list_cuts_no_count_short_in_a_narrow_terminal(run, monkeypatch):
    monkeypatch.setattr(cli, "SCALES", ("smoke", "small", "short", "paper"))
    monkeypatch.setattr(cli, "_count", lambda *_: "123/456")
    monkeypatch.setattr(cli, "console", Console(width=30))
    assert run("list").output.count("123/456") == 2 * 4


def test_list_and_report_count_alike(run, tmp_path):
    run("run", "counting", "--only", "far", "--seeds", "0,4,5")
    assert "1/2" in run("list").output
    run("report", "--out", "drawn")
    assert "counting](#counting): Table of numbers (smoke 1/2)" in (tmp_path / "drawn" / "report.md").read_text()


def test_run_records_and_prints_the_table(run, tmp_path):
    done = run("run", "counting")
    assert done.exit_code == 0, done.output
    assert "Accuracy of counting" in done.output
    assert "smoke scale: tiny networks" in done.output
    assert "90.00" in done.output
    assert len(list(Store(tmp_path / "results").all())) == 2
    assert "2/2" in run("list").output


def test_the_demo_runs_anew_prints_every_table_and_explains_them(run, monkeypatch, tmp_path):
    other = replace(COUNTING, id="more", show=(comparison("accuracy", title="More counting"),))
    monkeypatch.setattr("torch.set_num_threads", lambda _: None)  # which would outlast the test
    monkeypatch.setattr(cli, "DIGITS", COUNTING)
    monkeypatch.setattr(cli, "NOISE", other)
    for _ in range(2):
        done = run("demo")
        assert done.exit_code == 0, done.output
        assert "2 runs, about a minute\n" in done.output
        assert "run 1 of 2" not in done.output  # a line for each would bury the tables
    words = " ".join(done.output.split())
    assert all(text in words for text in ("Accuracy of counting", "More counting", cli.DEMO, "runs/demo/report.html"))
    assert (tmp_path / "runs" / "demo" / "report.html").exists()


@pytest.mark.parametrize("experiment", [DIGITS, NOISE], ids=lambda one: one.id)
def test_the_tables_of_the_demo_fit_a_terminal(experiment, monkeypatch, tmp_path, capsys):
    """With numbers as wide as they come: two digits before the point, and a spread."""
    store = Store(tmp_path)
    for case in experiment.cases("smoke"):
        wide = 1 + case.run.seed / 100
        metrics = {"accuracy": 0.9 * wide, "nll": wide, "ece": 0.1 * wide, "parameters": 3e5, "auroc": 0.9 * wide}
        metrics |= {"training_seconds": 12.0 * wide, "information_known": wide, "information_unknown": wide}
        metrics |= {"epochs": 40 if case.labels["method"] == "Single" else 60}
        store.put(Record(case.run, metrics, Provenance("2 x a processor")))
    monkeypatch.setattr(cli, "console", Console(width=80))
    cli._print(experiment, "smoke", store, None)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (heading,) = [line for line in lines if line.startswith("method ")]
    assert "epochs" in heading
    assert "seeds" not in heading  # the same for all, said in the caption
    assert any("seeds 0 to 2" in line for line in lines)


def test_what_is_recorded_is_not_run_again(run, tmp_path):
    run("run", "counting")
    file = Store(tmp_path / "results").path(Run("counting", {"to": 3}, "smoke"))
    content = json.loads(file.read_text())
    content["metrics"]["accuracy"] = 0.1234
    file.write_text(json.dumps(content))
    assert "12.34" in run("run", "counting").output


def test_times_are_left_out_where_other_work_shares_the_machine(run, tmp_path):
    run("run", "counting", "--only", "up")
    run("run", "counting", "--only", "far", "--shared")
    up, far = sorted(Store(tmp_path / "results").all(), key=lambda record: record.metrics["accuracy"])
    assert up.metrics == {"accuracy": 0.3, "training_seconds": 1.0}
    assert far.metrics == {"accuracy": 0.9}


def test_without_the_laboratory_it_says_what_to_install():
    hidden = "import sys; sys.modules['typer'] = None; sys.argv = ['batchensemble', 'list']"
    command = f"{hidden}; from batchensemble.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"batchensemble: there is no typer here; {how_to_install('lab')}\n"


def test_what_has_no_table_says_where_its_figure_is(run, monkeypatch):
    monkeypatch.setattr(cli, "EXPERIMENTS", {"counting": replace(COUNTING, show=())})
    assert "A figure: batchensemble report --results results" in run("run", "counting").output


def test_only_some_rows_and_other_seeds(run, tmp_path):
    assert run("run", "counting", "--only", "far", "--seeds", "4,5").exit_code == 0
    assert [record.run.seed for record in Store(tmp_path / "results").all()] in ([4, 5], [5, 4])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "countin"), 2, "did you mean counting?"),
        (("run", "zebra"), 2, "there are counting, failing"),
        (("run", "all", "zebra"), 2, "no experiment is called 'zebra'"),
        (("run", "counting", "--device", "tpu"), 2, "'tpu' is not one of 'auto', 'cpu', 'cuda'"),
        (("run", "counting", "--data", "nowhere"), 2, "nowhere is not a folder"),
        (("run", "counting", "--seeds", "one"), 2, "expected numbers like 0,1,2"),
        (("run", "counting", "--seeds", "-1"), 2, "expected numbers like 0,1,2; got '-1'"),
        (("run", "counting", "--seeds", "99999999999999999999"), 2, "a seed is at most 4294967295"),
        (("run", "counting", "--results", "a-file"), 2, "a-file is not a folder"),
        (("run", "counting", "--work", "a-file"), 2, "a-file is not a folder"),
        (("list", "--results", "a-file"), 2, "a-file is not a folder"),
        (("report", "--results", ".", "--out", "a-file"), 2, "a-file is not a folder"),
        (("run", "counting", "--devices", "0"), 2, "'--devices'"),
        (("run", "counting", "--devices", "2"), 1, "a run of counting has one device; start the command several times"),
        (("run", "counting", "--scale", "huge"), 2, "huge"),
        (("run", "counting", "--scale", "paper"), 1, "counting has the scales smoke; got 'paper'"),
        (("run", "all", "--scale", "paper"), 2, "no experiment has the scale paper"),
        (("run", "counting", "--only", "sideways"), 1, "no row is labelled sideways; there are far; up"),
        (("run", "failing"), 1, "the disk is full"),
        (("report", "--results", "nowhere"), 1, "there is no folder nowhere with records"),
        (("data", "mnist"), 1, "data sets are cifar10, cifar100, cifar10-c, cifar100-c; got mnist"),
        (("data", "digits-c"), 1, "got digits-c"),
        (("bench", "--out", "."), 1, ". is a folder: --out names the file of the record"),
    ],
)
def test_what_is_wrong_is_said(run, arguments, code, message, tmp_path):
    (tmp_path / "a-file").touch()
    done = run(*arguments)
    assert done.exit_code == code
    assert message in " ".join(done.output.replace("│", " ").split())
    assert "Traceback" not in done.output


def test_the_help_names_the_data_sets_that_there_are(run):
    assert ", ".join(cli.FILES) in " ".join(run("data", "--help").output.replace("│", " ").split())


def test_the_help_cuts_no_scale_in_two(run):
    words = run("run", "--help").output.split()
    assert {"smoke:", "small:", "short:", "paper:"} <= set(words)
    assert not any("smoke|" in word for word in words)


def test_what_another_process_is_at_is_left_to_it(run, tmp_path):
    store = Store(tmp_path / "results")
    first, second = (Run("counting", {"to": to}, "smoke") for to in (3, 9))
    with locked(store.path(first)):
        done = run("run", "counting")
    assert done.exit_code == 1
    assert done.stderr == f"error: up, seed 0 (counting-{first.key}): {BUSY}\n"
    assert "90.00" in done.output
    assert (store.has(first), store.has(second)) == (False, True)


def test_what_another_process_is_at_is_waited_for_last(run, tmp_path):
    store = Store(tmp_path / "results")
    first, second = (Run("counting", {"to": to}, "smoke") for to in (3, 9))
    done = []
    with locked(store.path(first)):
        here = Thread(target=lambda: done.append(run("run", "counting", "--wait")))
        here.start()
        wait_until(lambda: store.has(second))
        assert not store.has(first)
    here.join(30)
    assert done[0].exit_code == 0
    assert store.has(first)


def wait_until(true, seconds=30.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("content", ["{", '{"format": 99}'])
def test_a_record_that_cannot_be_read_is_named_and_hides_no_other(run, tmp_path, content):
    run("run", "counting")
    file = Store(tmp_path / "results").path(Run("counting", {"to": 9}, "smoke"))
    file.write_text(content)
    again, report = run("run", "counting"), run("report")
    assert (again.exit_code, report.exit_code) == (1, 0)
    assert again.stderr.count(file.name) == report.stderr.count(file.name) == 1
    assert again.stderr.startswith("error: far, seed 0")
    assert report.stderr.startswith("left out: results/smoke/counting")
    assert "30.00" in again.output
    assert "30.00" in (tmp_path / "report" / "report.md").read_text()


@pytest.mark.parametrize("wrong", ["nine", ["nine"], {"of": 9}])
def test_a_record_whose_metric_has_another_type_is_named_and_hides_no_other(run, tmp_path, wrong):
    run("run", "counting")
    file = Store(tmp_path / "results").path(Run("counting", {"to": 9}, "smoke"))
    content = json.loads(file.read_text())
    content["metrics"]["accuracy"] = wrong
    file.write_text(json.dumps(content))
    again, report = run("run", "counting"), run("report")
    assert (again.exit_code, report.exit_code) == (1, 0)
    for done, heading in ((again, "error"), (report, "left out")):
        assert done.stderr.startswith(f"{heading}: smoke/{file.name}: accuracy must be a number")
        assert "Traceback" not in done.output
    assert "30.00" in again.output
    assert "30.00" in (tmp_path / "report" / "report.md").read_text()


def test_a_run_that_fails_stops_no_other_and_is_reported_last(run):
    done = run("run", "failing", "counting")
    assert done.exit_code == 1
    assert "90.00" in done.output
    assert done.stderr == f"error: down, seed 0 (counting-{Run('counting', {'to': -1}, 'smoke').key}): {FULL}\n"


def test_the_first_failure_is_shown_with_its_traceback_on_demand(run, monkeypatch, tmp_path):
    monkeypatch.setenv("BATCHENSEMBLE_TRACEBACK", "1")
    done = run("run", "failing", "counting")
    assert isinstance(done.exception, OSError)
    assert not list(Store(tmp_path / "results").all())


def test_all_leaves_out_what_cannot_run_and_the_names_of_experiments_do_not(run, monkeypatch, tmp_path):
    timed = replace(COUNTING, id="timed", study=Study("timing", count, timed=True))
    monkeypatch.setattr(cli, "EXPERIMENTS", {"timed": timed, "counting": COUNTING})
    done = run("run", "all", "--shared")
    assert done.exit_code == 0
    assert done.stderr.startswith("left out: up, seed 0 (timing-")
    assert " and 1 more: timing is a matter of time" in done.stderr
    assert len(list(Store(tmp_path / "results").all())) == 2
    named = run("run", "counting", "timed", "--shared", "--seeds", "1")
    assert (named.exit_code, named.stderr[:29]) == (1, "error: timing is a matter of ")
    assert len(list(Store(tmp_path / "results").all())) == 2, "nothing was run"


def test_a_device_that_is_not_there_is_said_before_the_first_run(run, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    done = run("run", "counting", "--device", "cuda")
    assert (done.exit_code, done.stderr) == (1, "error: expected 1 CUDA device, found none\n")


def test_a_terminal_of_few_letters_shows_the_whole_table(tmp_path):
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = "from batchensemble import cli; cli.ITEM = '\\u00b1 \\u2014'"
    command = (
        f"import sys; sys.argv = ['batchensemble', 'list']; {words}; from batchensemble.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, env=ascii_only, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "? ?" in done.stdout
    assert "Recorded runs / all runs" in done.stdout


def test_translations_are_utf_8_whatever_the_terminal_takes(run, monkeypatch):
    """A translation is data: no letter of it may be replaced."""
    monkeypatch.setattr(cli, "find_translator", lambda *_: None)
    monkeypatch.setattr(cli, "translated_lines", lambda *_, **__: ["\u00fcber \u0142"])
    done = CliRunner(charset="latin-1").invoke(cli.app, ["translate", "model"])
    assert (done.exit_code, done.stdout_bytes) == (0, "\u00fcber \u0142\n".encode())


@pytest.mark.parametrize("out", ["/dev/null/report", "/proc"])
def test_what_cannot_be_written_is_not_drawn(run, monkeypatch, out):
    run("run", "counting")
    monkeypatch.setattr(cli, "write_report", lambda *_, **__: pytest.fail("drawn"))
    done = run("report", "--out", out)
    assert (done.exit_code, "error" in done.output) == (1, True)


def test_a_log_file_gets_a_line_for_every_run_that_is_done(run):
    key = Run("counting", {"to": 9}, "smoke").key
    assert f"run 2 of 2: far, seed 0 (counting-{key})\n" in run("run", "counting").output
    assert "run 2 of 2" not in run("run", "counting").output


def test_names_in_brackets_are_shown_as_they_are(run, tmp_path):
    folder = "results[bold][/run]"
    run("run", "counting", "--results", folder)
    assert folder in run("list", "--results", folder).output
    Store(tmp_path / folder).path(Run("counting", {"to": 9}, "smoke")).write_text("{")
    assert folder in run("report", "--results", folder).output


def test_ids_are_whole_on_a_narrow_terminal(run, monkeypatch):
    monkeypatch.setattr(cli, "console", Console(width=38))
    assert "counting" in run("list").output


def test_an_interrupted_run_says_how_to_go_on(run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "perform_all", interrupted)
    done = run("run", "counting")
    assert done.exit_code == 130
    assert done.stderr == "interrupted: what is recorded stays, and the same command goes on from there\n"


@pytest.mark.parametrize(
    "error",
    [
        Diverged("the loss of 0 is nan in epoch 1: try a lower learning rate"),
        ModuleNotFoundError(f"MultitaskGP needs GPyTorch: {how_to_install('bandits')}"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_training_that_diverged_and_an_extra_that_is_missing_are_said_in_one_line(run, monkeypatch, error):
    def failed(*_, **__):
        raise error

    monkeypatch.setattr(cli, "perform_all", failed)
    done = run("run", "counting")
    assert done.exit_code == 1
    assert done.stderr == f"error: {error}\n"


def test_a_reader_who_has_seen_enough_is_no_error(run, monkeypatch):
    def closed(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(cli, "perform_all", closed)
    assert "error" not in run("run", "counting").output


def test_no_word_and_no_column_is_lost_on_a_narrow_terminal(run, monkeypatch):
    long = replace(COUNTING, scales={"smoke": Grid((Row({"method": "Ensemblesofmany"}, {"to": 3}),))})
    monkeypatch.setattr(cli, "EXPERIMENTS", {"counting": long})
    monkeypatch.setattr(cli, "console", Console(width=20))
    shown = run("run", "counting").output
    for word in ("Ensemblesofmany", "30.00", "accuracy"):
        assert word in shown


def test_a_report_of_nothing_says_so(run, tmp_path):
    (tmp_path / "empty").mkdir()
    asked = run("report", "--results", str(tmp_path / "empty"), "--out", str(tmp_path / "report"))
    assert asked.exit_code == 0
    assert "there are no records in" in asked.output
