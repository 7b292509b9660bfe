"""Linear layers with a weight for each member: one function, in the form for graphs and in the plain one."""

import pytest
import torch
from torch import Tensor

import batchensemble as be
from batchensemble.nn.speed import stacked_linear as module
from batchensemble.nn.speed.stacked_linear import StackedLinear, stacked_linear


def parts(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = (3, 5, 4), (3, 2, 4), (3, 2)  # x, weights, biases
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def test_it_is_a_product_for_each_member() -> None:
    x, weights, biases = parts()
    expected = torch.einsum("mni,moi->mno", x, weights)
    torch.testing.assert_close(stacked_linear(x, weights, None), expected)
    torch.testing.assert_close(stacked_linear(x, weights, biases), expected + biases.unsqueeze(1))


def test_gradients_of_the_form_for_graphs() -> None:
    assert torch.autograd.gradcheck(StackedLinear.apply, parts())
    assert torch.autograd.gradgradcheck(StackedLinear.apply, parts())


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("most", [0, 16])
def test_a_compiled_layer_with_many_rows_is_the_layer(monkeypatch: pytest.MonkeyPatch, biased: bool, most: int) -> None:
    monkeypatch.setattr(module, "MOST", most)
    graphs: list[str] = []

    def keeping(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        graphs.append(graph.code)
        return graph

    torch.manual_seed(0)
    layer = be.nn.Linear(3, 2, bias=biased, members=2, init="normal").double()
    x = torch.randn(80, 3, dtype=torch.float64, requires_grad=True)
    torch.compiler.reset()
    seen = []
    for forward in (layer, torch.compile(layer, backend=keeping, fullgraph=True)):
        y = forward(x)
        seen.append([y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])])
    torch.testing.assert_close(seen[0], seen[1])
    assert ("autograd_function_apply" in graphs[0]) == (most > 0)


def test_under_autocast_all_of_it_is_in_the_smaller_type() -> None:
    layer = be.nn.Linear(3, 2, members=2)
    x = torch.randn(80, 3, requires_grad=True)
    torch.compiler.reset()
    with torch.autocast("cpu", torch.bfloat16):
        y = torch.compile(layer, backend="aot_eager", fullgraph=True)(x)
        expected = layer(x)
    assert y.dtype == expected.dtype == torch.bfloat16
    y.float().sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == torch.float32
    torch.testing.assert_close(y, expected, rtol=0.02, atol=0.02)


def test_autocast_leaves_float64_alone() -> None:
    layer, x = be.nn.Linear(3, 2, members=2).double(), torch.randn(80, 3, dtype=torch.float64)
    torch.compiler.reset()
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.compile(layer, backend="aot_eager")(x).dtype == layer(x).dtype == torch.float64


@pytest.mark.parametrize("rows", [2, 200])
def test_a_bias_of_another_type_is_taken_in_the_inputs(rows: int) -> None:
    layer = be.nn.Linear(8, 6, members=2).bfloat16()
    layer.bias.data = layer.bias.data.float()
    assert layer(torch.randn(rows, 8).bfloat16()).dtype == torch.bfloat16
