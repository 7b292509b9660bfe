"""Weights folded once: the same answers, no gradients lost, nothing left behind."""

import threading

import pytest
import torch
from torch import nn

import batchensemble as be
from batchensemble.nn.speed import folded


def ensemble(rank: int = 1) -> be.Ensemble:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5, bias=False))
    return be.convert(net, 3, init="normal", rank=rank).double().eval()


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of every product with folded weights."""
    seen: list[int] = []
    product = folded.Folded.__call__
    monkeypatch.setattr(folded.Folded, "__call__", lambda self, x: seen.append(len(x)) or product(self, x))
    return seen


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("shape", [(4, 6), (4, 7, 6)])
def test_answers_are_the_same(rank: int, shape: tuple[int, ...], products: list[int]) -> None:
    model, x = ensemble(rank), torch.randn(shape, dtype=torch.float64)
    with torch.no_grad():
        plain = model.members(x)
        with folded.folded_once(model.net):
            torch.testing.assert_close(model.members(x), plain)
            assert products == [12, 12]
            torch.testing.assert_close(model(x, member=1), plain[1])
        model.members(x)
    assert products == [12, 12]  # a member alone scales, and so does everybody afterwards


def test_gradients_are_never_lost(products: list[int]) -> None:
    model = ensemble()
    with folded.folded_once(model.net):
        model.members(torch.ones(2, 6, dtype=torch.float64)).sum().backward()
    assert model.net[0].r.grad is not None
    assert products == []


def test_rows_behind_another_axis_are_not_taken_for_members(products: list[int]) -> None:
    attention = be.nn.MultiheadAttention(4, 2, members=3, batch_first=False).eval()
    x = torch.randn(3, 6, 4)  # as many positions as members
    with torch.no_grad():
        plain, _ = attention(x, x, x)
        with folded.folded_once(attention):
            torch.testing.assert_close(attention(x, x, x)[0], plain)
    assert products == []


def test_another_thread_sees_weights_as_they_are(products: list[int]) -> None:
    model = ensemble()

    def other() -> None:
        with torch.no_grad():
            model.members(torch.ones(2, 6, dtype=torch.float64))

    with folded.folded_once(model.net):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert products == []


def test_what_would_not_fit_is_not_folded(products: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    model = ensemble()
    monkeypatch.setattr(folded, "MOST_BYTES", 3 * 8 * (6 * 8 + 8 * 5) - 1)
    with folded.folded_once(model.net), torch.no_grad():
        model.members(torch.ones(2, 6, dtype=torch.float64))
    assert products == []


def test_autocast_gets_its_own_numbers() -> None:
    model, x = ensemble().float(), torch.randn(4, 6)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16), folded.folded_once(model.net):
        found = model.members(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), model.members(x), rtol=0.05, atol=0.05)


def test_a_module_that_only_has_an_attribute_of_our_name_is_left_alone() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net[1].features_at = -1
    model = be.convert(net, members=2)
    with folded.folded_once(model.net), torch.no_grad():
        assert model.members(torch.ones(2, 2)).shape == (2, 2, 2)
