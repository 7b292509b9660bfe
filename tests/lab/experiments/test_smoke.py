"""Everything runs: `batchensemble run all --scale smoke`, then `batchensemble report`, on this machine."""

import pytest
from typer.testing import CliRunner

from batchensemble.cli import app
from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.store import Store


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("laboratory")


def invoke(place, *arguments):
    return CliRunner().invoke(app, [*arguments, "--results", str(place / "results")], catch_exceptions=False)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_run(name, place):
    done = invoke(place, "run", name, "--scale", "smoke", "--device", "cpu", "--work", str(place / "work"))
    assert done.exit_code == 0, done.output
    assert name in done.output
    store = Store(place / "results")
    for case in EXPERIMENTS[name].cases("smoke"):
        record = store.get(case.run)
        assert record.metrics
        assert record.provenance.seconds > 0


@pytest.mark.timeout(300)
def test_report_of_them_all(place):
    done = invoke(place, "report", "--out", str(place / "report"))
    assert done.exit_code == 0, done.output
    page = (place / "report" / "report.html").read_text()
    for name in EXPERIMENTS:
        assert name in page
