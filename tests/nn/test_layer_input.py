"""Whose rows a layer was given: by the route, and refused where nobody can tell."""

import pytest
import torch
from torch import nn

import batchensemble as be
from batchensemble.nn.routing.route import Route, travel

M = 3


def routed(**options) -> nn.Module:
    return be.convert(nn.Linear(2, 2), members=M, **options).net


def test_a_converted_layer_outside_its_ensemble_is_refused_and_named() -> None:
    net = be.convert(nn.Sequential(nn.Linear(2, 2)), members=M).net
    with pytest.raises(RuntimeError, match=r"layer '0' \(Linear\).*outside.*carry_route"):
        net(torch.ones(3, 2))


def test_a_layer_before_the_fan_out_is_refused() -> None:
    with pytest.raises(RuntimeError, match="reached before the fan-out at 'head'"):
        travel(Route(M, 4, None, fan_out="head", copies=M), routed(), torch.ones(4, 2))


def test_a_layer_of_another_ensemble_is_refused() -> None:
    with pytest.raises(RuntimeError, match="3 members inside an ensemble of 5"):
        travel(Route(5, 5, None), routed(), torch.ones(5, 2))


@pytest.mark.parametrize(("count", "found"), [(0, 3), (3, 0), (3, 4), (3, 2)])
def test_other_numbers_of_rows_are_refused(count: int, found: int) -> None:
    with pytest.raises(ValueError, match=f"axis 0 should hold the batch's {count} rows, or a multiple"):
        travel(Route(M, count, torch.zeros(count, dtype=torch.long)), routed(), torch.ones(found, 2))


def test_rows_on_another_axis_are_told_from_missing_ones() -> None:
    batch_first = be.convert(nn.LSTM(2, 2, batch_first=True), members=M, combine="mean")
    time_first = be.convert(nn.LSTM(2, 2), members=M, combine="mean")
    with pytest.raises(ValueError, match=r"axis 1 should hold the batch's 12 rows.* Axis 0 does: .*batch_dim=1"):
        time_first.members(torch.ones(4, 5, 2))
    with pytest.raises(ValueError, match=r"axis 0 should hold the batch's 12 rows.* Axis 1 does: .*batch_first=True"):
        travel(Route(M, 12, None), batch_first.net, torch.ones(5, 12, 2))
    with pytest.raises(ValueError, match=r"or a multiple of them\. If the first argument"):
        travel(Route(M, 12, None), batch_first.net, torch.ones(5, 7, 2))


@pytest.mark.parametrize(("count", "found"), [(0, 3), (3, 0), (3, 4), (3, 2)])
def test_one_member_owns_any_number_of_rows(count: int, found: int) -> None:
    layer, x = routed(init="normal"), torch.randn(found, 2)
    torch.testing.assert_close(travel(Route(M, count, 1), layer, x), layer.plain(1)(x))


@pytest.mark.parametrize("norm", ["shared", "member"])
def test_features_are_no_rows(norm: str) -> None:
    layers = be.convert(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)), members=M, init="normal", norm=norm).net
    x, ids = torch.randn(4, 3), torch.tensor([2, 0, 1, 1])
    expected = travel(Route(M, 4, ids), layers, x)
    torch.testing.assert_close(travel(Route(M, 4, ids, axis=1), layers, x), expected)
    with pytest.raises(ValueError, match="axis 0 should hold the batch's 3 rows"):  # as many as there are features
        travel(Route(M, 3, ids[:3], axis=1), layers, x)


def test_ids_of_words_may_be_rows() -> None:
    table = be.convert(nn.Embedding(9, 2), members=M, include="*", init="normal").net
    x, ids = torch.arange(8).reshape(2, 4), torch.tensor([2, 0, 1, 1])  # two words, four rows
    expected = travel(Route(M, 4, ids), table, x.T).transpose(0, 1)
    torch.testing.assert_close(travel(Route(M, 4, ids, axis=1), table, x), expected)


def test_ids_of_a_batch_serve_its_inner_rows_next_to_one_another() -> None:
    layer = routed(init="normal")
    x, ids = torch.randn(4, 2), torch.tensor([2, 0])
    inner = travel(Route(M, 4, torch.tensor([2, 2, 0, 0])), layer, x)
    torch.testing.assert_close(travel(Route(M, 2, ids), layer, x), inner)
