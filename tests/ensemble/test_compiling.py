"""Compiled ensembles: calls and `predict` go through the compiler, and copies and files do not carry it."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

import batchensemble as be
from batchensemble.ensemble.compiling import compile_, compile_arguments


@pytest.fixture
def model() -> be.Ensemble:
    torch.manual_seed(0)
    torch._dynamo.reset()
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    return be.convert(net, members=4).double().eval()


def test_predict_and_calls_run_compiled_and_answer_the_same(model: be.Ensemble) -> None:
    x = torch.randn(5, 6, dtype=torch.float64)
    answer, prediction = model(x), model.predict(x)
    counter = CompileCounter()
    model.compile(backend=counter, fullgraph=True)
    torch.testing.assert_close(model.predict(x).outputs, prediction.outputs)
    assert counter.frame_count == 1
    torch.testing.assert_close(model(x), answer)
    assert counter.frame_count == 2


def test_every_ensemble_has_recompilations_of_its_own(model: be.Ensemble) -> None:
    for width in range(2, 2 + torch._dynamo.config.recompile_limit + 1):
        other = be.convert(nn.Linear(4, width), members=2).eval()
        other.compile(backend="eager", fullgraph=True)  # which makes it an error to run out of them
        assert other(torch.ones(3, 4)).shape == other.predict(torch.ones(3, 4)).probs.shape == (3, width)


def test_members_come_and_go_as_often_as_they_like(model: be.Ensemble) -> None:
    x, ids = torch.randn(5, 6, dtype=torch.float64), torch.arange(5) % 2
    expected = model(x, member=ids)
    model.compile(backend="eager", fullgraph=True)
    for _ in range(torch._dynamo.config.recompile_limit + 1):
        model.add_members(1)
        torch.testing.assert_close(model(x, member=ids), expected)
        assert len(model.predict(x).outputs) == len(model)
    assert model.keep_members([1, 0]).predict(x).outputs.shape == (2, 5, 3)
    torch.testing.assert_close(model(x, member=1 - ids), expected)


def test_parts_of_a_compiled_prediction_are_kept(model: be.Ensemble) -> None:
    """A CUDA graph writes its next answer where the last one lies."""
    x, buffers = torch.randn(4, 6, dtype=torch.float64), {}
    expected = model.predict(x).outputs
    model.compile(backend="eager")
    compiled = model._side_by_side

    def overwriting(*batch: Any) -> tuple[torch.Tensor, int]:
        out, axis = compiled(*batch)
        return buffers.setdefault("answer", out).copy_(out), axis

    model.__dict__["_side_by_side"] = overwriting
    torch.testing.assert_close(model.predict(x, batch_size=2).outputs, expected)


def test_copies_and_pickles_of_a_compiled_ensemble_are_as_they_were_before(model: be.Ensemble) -> None:
    x = torch.randn(5, 6, dtype=torch.float64)
    model.compile(backend="eager")
    expected = model.predict(x).outputs
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert "_side_by_side" not in other.__dict__
        assert other._compiled_call_impl is None
        torch.testing.assert_close(other.predict(x).outputs, expected)


def test_options_of_a_mode_and_of_the_user_join_those_for_members() -> None:
    arguments = compile_arguments(mode="reduce-overhead", options={"realize_reads_threshold": 9}, fullgraph=True)
    assert arguments["options"] == {"realize_reads_threshold": 9, "triton.cudagraphs": True}
    assert arguments["fullgraph"] is True
    assert compile_arguments(mode="default", backend="aot_eager") == {"backend": "aot_eager", "mode": "default"}


def test_options_reach_calls_and_members_alike_and_stay_the_callers(model: be.Ensemble) -> None:
    seen: list[int] = []

    def keep(guards: list[object]) -> list[bool]:
        seen.append(len(guards))
        return [True] * len(guards)

    options = {"guard_filter_fn": keep}
    model.compile(backend="aot_eager", options=options)
    x = torch.randn(5, 6, dtype=torch.float64)
    model(x)
    assert len(seen) == 1
    model.members(x)
    assert len(seen) == 2
    assert options == {"guard_filter_fn": keep}


@pytest.mark.parametrize("members", [False, True])
def test_only_networks_with_members_get_the_options(monkeypatch: pytest.MonkeyPatch, members: bool) -> None:
    seen: dict[str, object] = {}
    monkeypatch.setattr(torch, "compile", lambda function, **kwargs: seen.update(kwargs) or function)
    layer = be.nn.Linear(2, 2, members=2) if members else nn.Linear(2, 2)
    compile_(nn.Sequential(layer), dynamic=False)
    assert seen == ({"dynamic": False, "options": {"realize_reads_threshold": 6}} if members else {"dynamic": False})
