"""The plans are one function: the same values and the same gradients, in float64."""

from functools import partial
from typing import Any

import pytest
import torch
from layer_cases import EVERY, RANK_ONE, Case, M
from torch import Tensor, nn

import batchensemble as be
from batchensemble.nn.equation import choose_plan, equation_5
from batchensemble.nn.routing.rows import Rows
from batchensemble.nn.speed.folded import folded_once

N = 4
close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
OWNERS = {"blocks": None, "one member": 1}
FOLDABLE = {
    f"{name}, {whose}": (case, owner)
    for name, case in RANK_ONE.items()
    for whose, owner in OWNERS.items()
    if owner is not None or getattr(be.nn, case.kind).stackable
}
everything_foldable = pytest.mark.parametrize(("case", "owner"), FOLDABLE.values(), ids=FOLDABLE)


def values_and_gradients(layer: nn.Module, x: Tensor, owner: Any, plan: str, **call: Any) -> list[Tensor]:
    x = x.clone().requires_grad_()
    y = equation_5(layer, x, Rows(M, owner), plan, **call)
    weights = torch.linspace(-1, 2, y.numel(), dtype=y.dtype).reshape(y.shape)
    return [y, *torch.autograd.grad((y * weights).sum(), [x, layer.weight, layer.r, layer.s])]


def assert_plans_agree(layer: nn.Module, case: Case, owner: Any) -> None:
    (x,) = case.batch(N * M)
    plans = (values_and_gradients(layer, x, owner, plan, **case.call) for plan in ("fold", "scale"))
    for folded, scaled in zip(*plans, strict=True):
        close(folded, scaled)


@pytest.mark.parametrize("rank", [1, 2])
@everything_foldable
def test_plans_are_the_same_function(case: Case, rank: int, owner: Any) -> None:
    assert_plans_agree(case.layer(rank=rank), case, owner)


@everything_foldable
def test_fast_weights_of_zero(case: Case, owner: Any) -> None:
    layer = case.layer()
    with torch.no_grad():
        layer.r[1, 0] = layer.r[2] = layer.s[0, 1] = layer.s[1, 0] = 0.0
    assert_plans_agree(layer, case, owner)


@pytest.mark.parametrize("owner", OWNERS.values(), ids=OWNERS)
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_many_positions_are_folded_and_of_a_higher_rank_fewer_since_only_scaling_pays_for_it(
    rank: int, owner: Any
) -> None:
    layer = be.nn.Linear(8, 8, members=M, rank=rank)
    last = 16 // rank  # 16 positions of 8 + 8 activations are four times the 8 x 8 weights
    answering = M if owner is None else 1
    assert choose_plan(layer, torch.ones(answering, last, 8), Rows(M, owner)) == "scale"
    assert choose_plan(layer, torch.ones(answering, last + 1, 8), Rows(M, owner)) == "fold"


def test_convolutions_are_folded_as_written_and_scaled_in_a_graph() -> None:
    layer, x = be.nn.Conv2d(2, 2, 1, members=M), torch.ones(2 * M, 2, 20, 20)
    chosen = []

    def answer(x: Tensor) -> Tensor:
        chosen.append(choose_plan(layer, x, Rows(M, None)))
        return x

    answer(x)
    torch.compile(answer, backend="eager")(x)
    assert chosen == ["fold", "scale before a norm"]


@pytest.mark.parametrize("graph", [False, True])
def test_complex_convolutions_have_the_gradients_of_explicit_members(graph: bool) -> None:
    torch.manual_seed(0)
    layer = be.nn.Conv1d(2, 3, 3, members=M, dtype=torch.complex128)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn_like(parameter))
    x = torch.randn(2 * M, 2, 8, dtype=torch.complex128, requires_grad=True)

    def members(x: Tensor) -> Tensor:
        fast = torch.einsum("mo,mi->moi", layer.s, layer.r)[..., None]
        each = zip(x.chunk(M), layer.weight * fast, layer.bias, strict=True)
        return torch.cat([nn.functional.conv1d(*one) for one in each])

    answer = torch.compile(layer, backend="aot_eager", fullgraph=True) if graph else layer
    expected, y = members(x), answer(x)
    close(y, expected)
    weights, inputs = torch.randn_like(y), [x, *layer.parameters()]
    gradients, truth = (torch.autograd.grad((out * weights).sum().real, inputs) for out in (y, expected))
    for ours, theirs in zip(gradients, truth, strict=True):
        close(ours, theirs)


def test_folded_convolutions_keep_channels_last() -> None:
    layer, x = be.nn.Conv2d(3, 4, 3, members=M), torch.randn(2 * M, 3, 9, 9).to(memory_format=torch.channels_last)
    y = equation_5(layer, x, Rows(M, None), "fold")
    assert y.is_contiguous(memory_format=torch.channels_last)


def test_ids_are_never_folded() -> None:
    layer, ids = be.nn.Linear(8, 8, members=M), torch.zeros(6, dtype=torch.long)
    assert choose_plan(layer, torch.ones(6, 1000, 8), Rows(M, ids)) == "scale"


def test_weights_that_were_folded_already_serve_blocks_without_gradients() -> None:
    layer, x = be.nn.Linear(8, 8, members=M), torch.ones(M, 8)
    with folded_once(layer):
        assert choose_plan(layer, x, Rows(M, None)) == "scale"
        with torch.no_grad():
            chosen = [choose_plan(layer, x, rows) for rows in (Rows(M, None), Rows(M, 1), Rows(M, None, axis=1))]
    assert chosen == ["folded already", "scale", "scale"]


@pytest.mark.parametrize("name", ["linear", "conv2d", "conv2d, circular", "transposed2d"])
@pytest.mark.parametrize("positions", [1, 64])
def test_the_plan_does_not_depend_on_how_many_members_there_are(name: str, positions: int) -> None:
    few, many = (EVERY[name].layer(members=members) for members in (1, 64))
    row = EVERY[name].row
    shape = (positions, *row[:-1], row[-1]) if name == "linear" else (row[0], *(8 * positions for _ in row[1:]))
    for owner in (0, None):
        x = torch.zeros(64, *shape)
        assert choose_plan(many, x, Rows(64, owner)) == choose_plan(few, x if owner == 0 else x[:1], Rows(1, owner))
