"""The speed study: all cases are there with their denominators, and every way computes what its name says."""

import itertools
import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

import batchensemble as be
from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Run
from batchensemble.lab.studies.speed import timing
from batchensemble.lab.studies.speed.cases import LIMIT, QUICK, SINGLE, Settings, cases, skipped
from batchensemble.lab.studies.speed.networks import NETWORKS, Network
from batchensemble.lab.studies.speed.study import SPEED
from batchensemble.lab.studies.speed.timing import Measure, measure
from batchensemble.lab.studies.speed.ways import OURS, WAYS, AtOnce
from batchensemble.lab.studies.speed.work import inference, routing, training
from batchensemble.lab.studies.study import Context

CPU = torch.device("cpu")
HERE = (OURS, "naive, one by one", "naive, torch.func.vmap")
SMALL = Network("small", lambda: nn.Sequential(nn.Flatten(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 10)), (3,))


def test_every_case_has_every_way_over_every_denominator(monkeypatch):
    monkeypatch.setattr(timing, "_on_cpu", lambda work: 7.0)
    settings = Settings("resnet14", 2, (1, 3), (4,), ((2, 3, 5),), (4, 3), repeats=7)
    record = SPEED.run(Run("speed", settings, "smoke"), Context(device="cpu"))
    found = [(row["case"], row["way"], row["denominator"]) for row in record.metrics["rows"]]
    ways = [name for name in WAYS if name not in skipped(settings)]
    assert found == [
        *itertools.product(["inference, 1 inputs"], ways, [LIMIT, SINGLE]),
        *itertools.product(["inference, 3 inputs"], ways, [LIMIT, SINGLE]),
        *itertools.product(["training step, 4 rows"], ways, [LIMIT]),
        ("Linear 2 x 3 x 5", OURS, LIMIT),
        ("routing, 4 rows to 3 members, mlp", OURS, LIMIT),
        ("routing, 4 rows to 3 members, resnet14", OURS, LIMIT),
    ]
    assert all(row["ms"] == row["denominator_ms"] == 7.0 and row["ratio"] == 1 for row in record.metrics["rows"])
    assert all(row["how"] == "eager" and row["memory_ratio"] is None for row in record.metrics["rows"])
    assert record.metrics["skipped"] == skipped(settings)
    assert record.metrics["skipped"]["tabm"]  # not for images, installed or not
    assert skipped(Settings("mlp"))["BatchEnsemble, norm per member"] == "the network has no batch norms"


def test_a_ratio_is_ours_over_theirs(monkeypatch):
    given = [Measure(2.0, 50.0, "a"), *(Measure(ms, 2 * ms, "b") for ms in (3.0, 8.0))]
    monkeypatch.setattr(timing, "measure", lambda makes, *_: dict(zip(makes, given, strict=True)))
    ways = (OURS, "naive, one by one")
    settings = Settings("resnet14", 2, (), (4,), (), (1, 1), only=("training",), ways=ways)
    ours, naive = SPEED.run(Run("speed", settings, "smoke"), Context(device="cpu")).metrics["rows"]
    assert (ours["ratio"], ours["memory_ratio"], ours["how"], ours["denominator_how"]) == (1.5, 0.12, "b", "a")
    assert (naive["way"], naive["ratio"], naive["denominator_ms"]) == ("naive, one by one", 4.0, 2.0)


def test_what_does_not_fit_is_said_and_the_rest_is_measured(monkeypatch):
    def measured(makes, *_):
        return {name: None if name == "naive, one by one" else Measure(1.0, None, "eager") for name in makes}

    monkeypatch.setattr(timing, "measure", measured)
    settings = Settings("resnet14", 2, (), (4,), (), (1, 1), only=("training",))
    found = SPEED.run(Run("speed", settings, "smoke"), Context(device="cpu")).metrics
    assert "naive, one by one" not in {row["way"] for row in found["rows"]}
    assert {OURS, "naive, torch.func.vmap"} <= {row["way"] for row in found["rows"]}
    assert found["skipped"]["training step, 4 rows: naive, one by one"] == "it does not fit in memory"


@pytest.mark.parametrize("way", HERE[1:])
def test_independent_networks_answer_with_their_mean(way):
    torch.manual_seed(0)
    models = WAYS[way].build(SMALL, 3)
    x = SMALL.inputs(5, CPU)
    torch.manual_seed(0)
    nets = [SMALL.make() for _ in range(3)]
    expected = torch.stack([net(x).softmax(-1) for net in nets]).mean(0)
    torch.testing.assert_close(inference(models, x, compiled=False)().exp(), expected)


@pytest.mark.parametrize("way", HERE)
def test_a_training_step_moves_every_parameter(way):
    models = WAYS[way].build(SMALL, 2)
    parameters = [parameter for model in models for parameter in model.parameters()]
    before = [parameter.clone() for parameter in parameters]
    training(models, SMALL.inputs(64, CPU), compiled=False)()
    assert all((old != new).any() for old, new in zip(before, parameters, strict=True))


def test_routing_asks_every_row_its_member(monkeypatch):
    made = []
    original = be.convert
    monkeypatch.setattr(be, "convert", lambda *a, **k: made.append(original(*a, **k)) or made[-1])
    x = SMALL.inputs(7, CPU)
    answer = routing(SMALL, 5, x, compiled=False)()
    asked = [made[0](x, member=member) for member in range(5)]
    owners = [[i for i, each in enumerate(asked) if torch.allclose(each[row], answer[row])] for row in range(7)]
    assert sorted({owner[0] for owner in owners}) == list(range(5))  # all members, each row by one of them


def test_peers_are_swapped_in_where_they_are_installed(monkeypatch):
    class Layer(nn.Linear):  # stands for the other library's: the same function of (N, features) and (N, k, features)
        @classmethod
        def from_linear(cls, layer, members):
            assert members == 2
            new = cls(layer.in_features, layer.out_features)
            new.load_state_dict(layer.state_dict())
            return new

    def swap_(net, k, scaling_init):
        for name, child in list(net.named_children()):
            if isinstance(child, nn.Linear):
                setattr(net, name, Layer.from_linear(child, k))

    tabm, layers = ModuleType("tabm"), ModuleType("torch_uncertainty.layers.batch_ensemble")
    tabm.batchensemble_linear_layers_, layers.BatchLinear = swap_, Layer
    monkeypatch.setitem(sys.modules, "tabm", tabm)
    monkeypatch.setitem(sys.modules, layers.__name__, layers)
    for way in ("tabm", "torch-uncertainty"):
        torch.manual_seed(0)
        (model,) = WAYS[way].build(SMALL, 2)
        assert sum(isinstance(module, Layer) for module in model.modules()) == 2
        torch.manual_seed(0)
        net, x = SMALL.make(), SMALL.inputs(4, CPU)
        torch.testing.assert_close(model.eval()(x), net(x).log_softmax(-1))  # equal members: the network itself
        torch.testing.assert_close(model.train()(x), net(x))


def test_why_a_peer_is_not_there(monkeypatch):
    monkeypatch.setattr("batchensemble.lab.studies.speed.ways.find_spec", lambda name: None)
    assert "not installed" in WAYS["tabm"].why_not(NETWORKS["mlp"])
    monkeypatch.setattr("batchensemble.lab.studies.speed.ways.find_spec", lambda name: name)
    assert WAYS["tabm"].why_not(NETWORKS["mlp"]) == WAYS["torch-uncertainty"].why_not(NETWORKS["resnet14"]) == ""
    assert "convolutions" in WAYS["tabm"].why_not(NETWORKS["resnet14"])


def test_what_cannot_be_compiled_runs_as_it_is_written():
    def make(compiled):
        def work():
            if compiled:
                raise RuntimeError("the compiler gives up")

        return work

    assert measure({"it": make}, CPU, 1, compiled=True)["it"].how == "eager"


def test_an_error_of_the_work_itself_is_not_hidden():
    def make(compiled):
        raise RuntimeError("wrong shape")

    with pytest.raises(RuntimeError, match="wrong shape"):
        measure({"it": make}, CPU, 1, compiled=True)


def test_the_median_of_warm_calls_taken_in_turns(monkeypatch):
    """Three calls to get warm, three rounds that do not count, three that do; the slow one takes ten times as long."""
    now, calls, told = [0.0], [], []
    lasting = {
        name: iter([900.0] * 6 + [unit, 100 * unit, 2 * unit]) for name, unit in (("fast", 1e-3), ("slow", 1e-2))
    }

    def work(name):
        calls.append(name)
        now[0] += next(lasting[name])

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    makes = {name: lambda compiled, name=name: partial(work, name) for name in lasting}
    found = measure(makes, CPU, 3, compiled=False, begin=told.append)
    assert calls == ["fast"] * 3 + ["slow"] * 3 + ["fast", "slow"] * 6
    assert (found["fast"].ms, found["slow"].ms) == (pytest.approx(2), pytest.approx(20))
    assert told == ["fast", "slow"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_independent_networks_are_combined_as_an_ensembles_members_are(dtype):
    """By the same formula, so that what is timed differs in the networks alone: the answers are equal bit by bit."""
    x = SMALL.inputs(4, CPU, dtype)
    model = be.convert(SMALL.make(), 3).eval().to(dtype)
    networks = [model.extract(member) for member in range(3)]
    with torch.no_grad():
        outputs = torch.stack([network.eval()(x) for network in networks])
        assert torch.equal(inference(networks, x, compiled=False)(), be.Prediction(outputs).combined.to(dtype))
        at_once = AtOnce(networks).eval().to(dtype)
        stacked = be.Prediction(at_once.stacked(x.expand(3, *x.shape)))
        assert torch.equal(at_once(x), stacked.combined.to(dtype))
        torch.testing.assert_close(inference(networks, x, compiled=False)(), model(x))


def test_settings_are_checked():
    with pytest.raises(ValueError, match="network must be one of resnet32x4"):
        Settings("vgg")
    with pytest.raises(ValueError, match="multiple of 4 members"):
        Settings(rows=(10,))
    with pytest.raises(ValueError, match=r"^repeats must be at least 1; got 0$"):
        Settings(repeats=0)
    with pytest.raises(ValueError, match=r"^layers must be at least 1; got \(\(4, 0, 8\),\)$"):
        Settings(layers=((4, 0, 8),))
    with pytest.raises(ValueError, match="no case is called sleeping; there are 'inference, 8 inputs'"):
        cases(Settings(only=("sleeping",)), CPU)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[4] / "results" / "speed").glob("*.json")), ids=lambda path: path.name
)
def test_committed_records_are_records_of_this_study(path):
    content = json.loads(path.read_text())
    run, provenance = Run(**content["run"]), Provenance(**content["provenance"])
    assert run.study == SPEED.name
    assert provenance.commit
    for row in content["metrics"]["rows"]:
        assert row["denominator"] in (LIMIT, SINGLE)
        assert row["ratio"] == pytest.approx(row["ms"] / row["denominator_ms"], rel=1e-3)


@pytest.mark.slow
def test_compiled_on_this_machine():
    settings = Settings("mlp", 2, (2,), (4,), ((2, 3, 5),), (4, 3), repeats=1, compiled=True)
    rows = SPEED.run(Run("speed", settings, "smoke"), Context(device="cpu")).metrics["rows"]
    assert {row["how"] for row in rows} == {"compiled"}


def test_quick_is_quick():
    assert QUICK.repeats * (sum(QUICK.inputs) + sum(QUICK.rows)) < 50


@pytest.mark.gpu
def test_memory_is_a_works_own_whatever_was_there_before():
    gpu = torch.device("cuda")
    before = torch.empty(2**24, device=gpu)

    def make(compiled: bool) -> timing.Work:
        x = torch.zeros(2**20, device=gpu)
        return lambda: x + 1

    found = measure({"one": make}, gpu, 2, compiled=False)["one"]
    assert before.is_cuda
    assert found is not None
    assert found.mib == pytest.approx(8, abs=0.5)  # x and the sum, 4 MiB each
