"""Swapping layers in place and back: what is converted, what is left, and why."""

import copy
import pickle
import warnings
from typing import Any

import pytest
import torch
from layer_cases import randomise
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import parametrizations, prune

import batchensemble as be
from batchensemble.nn.conversion.convert import Conversion, convert_


class Scaled(nn.Linear):
    """A forward of its own."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(input)


class Standardised(nn.Conv2d):
    """torch's forward, but another convolution inside it."""

    def _conv_forward(self, input, weight, bias):
        return super()._conv_forward(input, weight - weight.mean(), bias)


class Named(nn.Linear):
    """Only a name of its own."""


class Marked(nn.Linear):
    """A method of its own, and a forward that is torch's."""

    def twice(self, input: torch.Tensor) -> torch.Tensor:
        return 2 * self(input)


class Asking(nn.Module):
    """Calls a layer's own method where it has one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Marked(4, 4), nn.Linear(4, 3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer.twice(x).relu() if isinstance(layer, Marked) else layer(x)
        return x


def patched() -> nn.Module:
    layer = nn.Linear(4, 4)
    plain = layer.forward
    layer.forward = lambda x: 2 * plain(x)
    return layer


def old_weight_norm(layer: nn.Module, name: str) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.utils.weight_norm(layer, name)


def inside_attention() -> nn.Module:
    attention = nn.MultiheadAttention(4, 2)
    parametrizations.weight_norm(attention.out_proj)
    return attention


LEFT = {
    "a subclass with its own forward": (lambda: Scaled(4, 4), "Scaled has a forward of its own"),
    "a subclass with its own convolution": (lambda: Standardised(4, 4, 1), "Standardised has a forward of its own"),
    "an object with its own forward": (patched, "Linear has a forward of its own"),
    "parametrised": (lambda: parametrizations.weight_norm(nn.Linear(4, 4)), "computed from other parameters"),
    "spectral norm": (lambda: parametrizations.spectral_norm(nn.Conv2d(4, 4, 1)), "computed from other parameters"),
    "orthogonal recurrence": (
        lambda: parametrizations.orthogonal(nn.GRU(4, 4), "weight_hh_l0"),
        "computed from other parameters",
    ),
    "old weight norm": (lambda: old_weight_norm(nn.LSTM(4, 4), "weight_hh_l0"), "computed from other parameters"),
    "inside an attention": (inside_attention, "computed from other parameters"),
    "pruned weight": (lambda: prune.random_unstructured(nn.Linear(4, 4), "weight", 0.5), "computed from other"),
    "pruned bias": (lambda: prune.random_unstructured(nn.Linear(4, 4), "bias", 0.5), "computed from other"),
    "bilinear": (lambda: nn.Bilinear(4, 4, 4), "no rank-one form of Bilinear"),
}


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.parametrize("include", [None, "*"])
def test_left_plain_with_a_reason(name: str, include: str | None) -> None:
    make, reason = LEFT[name]
    layer = make()
    net, done = convert_(nn.ModuleDict({"odd": layer, "head": nn.Linear(4, 2)}), 2, include=include, norm="member")
    assert net["odd"] is layer
    assert done.converted == ("head",)
    assert reason in done.left["odd"]


def test_lazy_layers_are_refused_until_they_have_weights() -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.LazyBatchNorm1d(), nn.LazyLinear(2))
    with pytest.raises(ValueError, match=r"\['1', '2'\] do not exist yet: run a batch through the network first"):
        convert_(net, 2)
    net(torch.randn(5, 4))
    assert convert_(net, 2, norm="member")[1].converted == ("0", "1", "2")


class LazyScale(LazyModuleMixin, nn.Module):
    """A layer that does not change its class when it has its weights, as torch's own lazy layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.UninitializedParameter()

    def initialize_parameters(self, x: Tensor) -> None:
        self.scale.materialize(x.shape[-1:])
        nn.init.ones_(self.scale)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def test_a_lazy_layer_with_weights_is_one_like_any_other() -> None:
    net = nn.Sequential(LazyScale(), nn.Linear(4, 3))
    with pytest.raises(ValueError, match=r"\['0'\] do not exist yet"):
        convert_(net, 2)
    net(torch.randn(5, 4))
    assert convert_(net, 2)[1] == Conversion(("1",), {"0": "there is no rank-one form of LazyScale"})


def test_a_network_with_parameters_of_its_own_is_left_with_their_names_not_as_a_whole() -> None:
    net = nn.Sequential(nn.Linear(4, 2))
    net.token, net.places = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(2, 4))
    net.register_parameter("nothing", None)
    _, done = convert_(net, 2)
    assert done == Conversion(("0",), {"": "there is no rank-one form of Sequential's own token, places"})


def test_a_subclass_with_torchs_forward_is_converted_and_comes_back() -> None:
    model = be.convert(Named(4, 2), members=2)
    assert type(model.extract(0)) is Named


def test_a_subclass_keeps_its_class_and_methods() -> None:
    model = randomise(be.convert(Asking().double(), members=3)).eval()
    x = torch.randn(5, 4, dtype=torch.float64)
    for twin in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        layer, head = twin.net.layers
        assert isinstance(layer, Marked)
        for i in range(3):
            weights = [part.weight * torch.outer(part.s[i], part.r[i]) for part in (layer, head)]
            hidden = (2 * (x @ weights[0].T + layer.bias[i])).relu()
            torch.testing.assert_close(twin.members(x)[i], hidden @ weights[1].T + head.bias[i])
    assert type(model.extract(0).layers[0]) is Marked


def test_a_class_that_registers_its_subclasses_does_not_hear_of_ours() -> None:
    registered = {}

    class Base(nn.Linear):
        def __init_subclass__(cls, *, name: str) -> None:
            registered[name] = cls

    class Child(Base, name="child"):
        pass

    model = be.convert(nn.Sequential(Child(4, 2)), members=2)
    assert isinstance(model.net[0], Child)
    assert registered == {"child": Child}


@pytest.mark.parametrize("name", ["fold", "members", "rank", "r"])
def test_methods_under_names_that_members_use_leave_a_layer_plain(name: str) -> None:
    kind = type("Own", (nn.Linear,), {name: property(lambda self: 1)})
    _, done = convert_(nn.Sequential(kind(4, 3), nn.Linear(3, 2)), members=2)
    assert done.left == {"0": f"it has {name!r} of its own, a name that members use"}


def test_transformers_conv1d() -> None:
    utils = pytest.importorskip("transformers.pytorch_utils")
    model = randomise(be.convert(utils.Conv1D(4, 3).double(), members=3, rank=2)).eval()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    be.verify(model, x)
    layer = model.net
    assert isinstance(layer, utils.Conv1D)
    for i in range(3):
        weight = layer.weight * torch.einsum("ki,ko->io", layer.r[i], layer.s[i])
        torch.testing.assert_close(model(x, member=i), x @ weight + layer.bias[i])
    assert type(model.extract(0)) is utils.Conv1D
    assert list(model.extract(0).state_dict()) == ["weight", "bias"]
    layer.reset_parameters()
    assert layer.weight.abs().max() < 0.2
    assert not layer.bias.any()
    assert bool((layer.r[:, 0].abs() == 1).all())


def test_hooks_attributes_and_modes_survive_both_ways() -> None:
    layer, seen = nn.Linear(4, 2).eval(), []
    layer.register_forward_hook(lambda *_: seen.append(1))
    layer.note = "kept"
    model = be.convert(nn.Sequential(layer), members=2)
    model(torch.ones(2, 4))
    plain = model.extract(1)
    plain(torch.ones(2, 4))
    assert seen == [1, 1]
    assert model.net[0].note == plain[0].note == "kept"
    assert not model.net[0].training
    assert vars(plain[0]).keys() == vars(layer).keys()  # nothing of ours is left behind


@pytest.mark.parametrize("norm", ["shared", "member"])
@pytest.mark.parametrize(
    "layer",
    [
        lambda: nn.Linear(4, 4),
        lambda: nn.Embedding(4, 4),
        lambda: nn.MultiheadAttention(4, 2),
        lambda: nn.LSTM(4, 4),
        lambda: nn.BatchNorm1d(4),
    ],
)
def test_attributes_under_our_names_come_back(layer, norm: str) -> None:
    plain = layer()
    names = ("rank", "init", "members", "routed", "where", "rows_at", "theirs", "groups")
    own = {name: f"their {name}" for name in names}
    for name, value in own.items():
        setattr(plain, name, value)
    model = be.convert(nn.Sequential(plain, nn.Linear(4, 4)), members=2, include="*", norm=norm, combine="mean")
    assert getattr(model.net[0], "rows_at", None) in (None, 0)
    found = model.add_members(1).extract(2)[0]
    assert {name: vars(found)[name] for name in own} == own
    assert vars(found).keys() == vars(plain).keys()


def test_what_is_inside_a_layer_is_left_alone() -> None:
    layer = Named(4, 4)
    layer.inner = nn.Identity()
    layer.inner.where = "theirs"
    assert vars(be.convert(layer, members=2).extract(0).inner) == vars(layer.inner)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_what_was_frozen_stays_frozen(frozen: str) -> None:
    layer = nn.Conv2d(3, 4, 1)
    getattr(layer, frozen).requires_grad_(False)
    model = be.convert(layer, members=2)
    for module in (model.net, model.extract(0), model.extract_mean()):
        assert {n for n, p in module.named_parameters() if not p.requires_grad} == {frozen}
    model.add_members(1).keep_members([2])
    assert {n for n, p in model.net.named_parameters() if not p.requires_grad} == {frozen}


@pytest.mark.parametrize("norm", ["batch", "", None])
def test_norm_must_be_a_known_word(norm: str) -> None:
    with pytest.raises(ValueError, match="norm must be 'shared' or 'member'"):
        convert_(nn.Linear(2, 2), 2, norm=norm)


def test_a_refusal_changes_nothing() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    for options in (
        {"members": 0},
        {"members": 2, "rank": 0},
        {"members": 2, "init": "zeros"},
        {"members": 2, "include": "9"},
        {"members": 2, "fan_out": "9"},
        {"members": 2, "shared_inputs": "mask"},
        {"members": 2, "combine": "median"},
    ):
        with pytest.raises(ValueError, match=r"must be|matches no|names"):
            be.convert(net, copy=False, **options)
        assert [type(layer) for layer in net] == [nn.Linear, nn.Linear]


def test_in_place_keeps_the_very_weights() -> None:
    net = nn.Sequential(nn.Linear(3, 3))
    weight = net[0].weight
    model = be.convert(net, members=2, copy=False)
    assert model.net is net
    assert model.net[0].weight is weight
    assert be.convert(nn.Sequential(nn.Linear(3, 3)), members=2).net[0].weight is not weight


@pytest.mark.parametrize("layer", [lambda: nn.Linear(4, 4), lambda: nn.LSTM(4, 4), lambda: nn.MultiheadAttention(4, 2)])
def test_in_place_a_layers_own_compiled_call_is_not_the_members(layer) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer()
            self.layer.compile(backend="eager")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x, x, x) if isinstance(self.layer, nn.MultiheadAttention) else self.layer(x)
            return y if isinstance(y, torch.Tensor) else y[0]

    net = Net().double().eval()
    model = randomise(be.convert(net, members=2, combine="mean", batch_dim=1, copy=False))
    x = torch.randn(3, 5, 4, dtype=torch.float64)
    for i in range(2):
        torch.testing.assert_close(model.members(x)[i], model.extract(i)(x))
    assert not torch.equal(*model.members(x))


class Holding(nn.Linear):
    def __init__(self, name: str, value: Any) -> None:
        super().__init__(4, 3)
        setattr(self, name, value)


@pytest.mark.parametrize("name", ["r", "s", "rank", "members"])
@pytest.mark.parametrize("kind", [nn.Parameter, nn.Buffer])
def test_tensors_under_names_that_members_use_leave_a_layer_plain(name: str, kind: Any) -> None:
    net = nn.Sequential(Holding(name, kind(torch.ones(2))), nn.Linear(3, 2))
    net, done = convert_(net, members=2)
    assert done.converted == ("1",)
    assert done.left == {"0": f"it has {name!r} of its own, a name that members use"}
    assert getattr(net[0], name).shape == (2,)


@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.Embedding])
def test_r_is_no_name_of_ours_in_layers_without_one(kind: Any) -> None:
    class Named(kind):  # type: ignore[misc, valid-type]
        """A weight of its own."""

    layer = Named(4) if kind is nn.LayerNorm else Named(4, 4)
    layer.r = nn.Parameter(torch.randn(4, 4))
    model = be.convert(nn.Sequential(layer, nn.Linear(4, 3)), members=2, norm="member", include="*")
    assert model.conversion.converted == ("0", "1")
    assert torch.equal(model.extract(1)[0].r, layer.r)


@pytest.mark.parametrize("name", ["plain", "fold", "stacked", "r"])
def test_attributes_in_the_way_of_ours_leave_a_layer_plain(name: str) -> None:
    _, done = convert_(nn.Sequential(Holding(name, "theirs"), nn.Linear(3, 2)), members=2)
    assert done.converted == ("1",)
