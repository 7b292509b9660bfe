"""Layers that a network holds in other places than among its children are the members' there, too."""

from types import MethodType
from typing import Any, NamedTuple

import pytest
import torch
from layer_cases import M, randomise
from torch import Tensor, nn

import batchensemble as be


class Pair(NamedTuple):
    first: Any
    second: Any


def chain(net: nn.Module) -> list[Any]:
    return [net.first, net.second]


HELD = {
    "list": chain,
    "tuple": lambda net: tuple(chain(net)),
    "named tuple": lambda net: Pair(*chain(net)),
    "dict": lambda net: dict(enumerate(chain(net))),
    "nested": lambda net: {0: [chain(net)[0]], 1: ({"layer": [chain(net)[1]]},)},
    "bound methods": lambda net: [layer.forward for layer in chain(net)],
    "bound calls": lambda net: tuple(layer.__call__ for layer in chain(net)),
}


class Net(nn.Module):
    """Two layers, called only by what is in `held`."""

    def __init__(self, held: str) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.held = HELD[held](self)

    def forward(self, x: Tensor) -> Tensor:
        for step in leaves(self.held):
            x = step(x).tanh()
        return x


def leaves(held: Any) -> list[Any]:
    if isinstance(held, dict | list | tuple):
        parts = held.values() if isinstance(held, dict) else held
        return [leaf for part in parts for leaf in leaves(part)]
    return [held]


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("held", HELD)
def test_every_member_answers(held: str, copied: bool) -> None:
    model = randomise(be.convert(Net(held).double(), members=M, combine="mean", copy=copied)).eval()
    x = torch.randn(5, 4, dtype=torch.float64)
    for i in range(M):
        expected = x
        for layer in (model.net.first, model.net.second):
            weight = layer.weight * torch.outer(layer.s[i], layer.r[i])
            expected = (expected @ weight.T + layer.bias[i]).tanh()
        torch.testing.assert_close(model.members(x)[i], expected)
        plain = model.extract(i)
        torch.testing.assert_close(plain(x), expected)
        assert all(getattr(step, "__self__", step) in (plain.first, plain.second) for step in leaves(plain.held))
    model.train()(x).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_containers_are_changed_in_place_and_may_hold_themselves() -> None:
    net = Net("list")
    held = net.held
    held.append(held)
    be.convert(net, members=2, copy=False)
    assert net.held is held
    assert held[0] is net.first
    assert held[2] is held


def test_what_holds_no_layer_is_left_as_it_is() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    own = net.own = (torch.ones(1), ["word"], net.extra_repr)
    be.convert(net, members=2, copy=False)
    assert net.own is own


def test_a_function_made_a_method_of_a_layer_follows_it() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    net.twice = (lambda layer, x: 2 * layer(x)).__get__(net[0])
    be.convert(net, members=2, copy=False)
    assert net.twice.__self__ is net[0]


class Gained(nn.Linear):
    """A layer with a hook that is a method of its own, and with dicts that hold it."""

    def __init__(self) -> None:
        super().__init__(4, 4)
        self.gain = 1.0
        self.register_forward_hook(self.times_gain)
        self.ways = {"own": (self,)}

    def times_gain(self, module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return output * self.gain


def test_hooks_and_containers_of_a_layer_are_its_replacements() -> None:
    net = nn.Sequential(Gained())
    model = be.convert(net, M, init="ones", combine="mean").eval()
    assert model.net[0].ways["own"][0] is model.net[0]
    model.net[0].gain = net[0].gain = 5.0
    x = torch.randn(3, 4)
    torch.testing.assert_close(model(x), net(x))
    plain = model.extract(0)
    assert plain[0].ways["own"][0] is plain[0]
    torch.testing.assert_close(plain(x), net(x))


@pytest.mark.parametrize("layer_alone", [False, True])
def test_hooks_on_loading_are_called_with_what_is_loaded(layer_alone: bool) -> None:
    layer, seen = nn.Linear(4, 4), []
    layer.register_load_state_dict_pre_hook(lambda module, *_: seen.append(module))
    model = be.convert(layer if layer_alone else nn.Sequential(layer), M)
    model.load_state_dict(model.state_dict())
    converted = model.net if layer_alone else model.net[0]
    assert seen == [converted]
    plain = model.extract(0)
    plain.load_state_dict(plain.state_dict())
    assert seen[1:] == [plain if layer_alone else plain[0]]


def test_a_function_bound_under_a_methods_name_stays_that_function() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        return 2 * type(self).forward(self, x)

    class Doubled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.call = MethodType(forward, self.layer)

        def forward(self, x: Tensor) -> Tensor:
            return self.call(x)

    net, x = Doubled(), torch.randn(3, 4)
    model = be.convert(net, M, init="ones", combine="mean").eval()
    torch.testing.assert_close(model(x), net(x))


@pytest.mark.parametrize("layer_alone", [False, True])
def test_a_layer_that_torch_compiled_calls_its_members(layer_alone: bool) -> None:
    compiled: Any = torch.compile(nn.Linear(4, 4), backend="eager")
    model = randomise(be.convert(compiled if layer_alone else nn.Sequential(compiled), M, combine="mean")).eval()
    be.verify(model, torch.randn(3, 4))
    first, second, *_ = model.members(torch.randn(3, 4))
    assert not torch.allclose(first, second)
