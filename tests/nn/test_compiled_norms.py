"""Batch norms in compiled graphs, shared and per member: torch's own function, gradients of members included."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import batchensemble as be
from batchensemble.nn.speed import hand_over, memberwise_norm

MEMBERS = 3
both_norms = pytest.mark.parametrize("norm", ["shared", "member"])


class Block(nn.Module):
    """Convolutions before a norm, around it, and without one; a residual; an operation in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, padding=1, bias=True)
        self.bare = nn.BatchNorm2d(4, affine=False, momentum=None)
        self.third = nn.Conv2d(4, 4, 1, bias=False)
        self.untracked = nn.BatchNorm2d(4, track_running_stats=False)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu_(self.norm(self.first(x)))
        x = torch.relu(self.bare(self.second(x)) + x)
        z = self.third(x)
        x = self.untracked(2 * z) + z  # not the tensor that the convolution made
        y: Tensor = self.head(torch.relu(x).mean((2, 3)))
        return y


def ensemble(norm: str = "shared") -> Any:
    torch.manual_seed(0)
    model = be.convert(Block(), MEMBERS, init="normal", norm=norm).double().train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d) and module.affine:
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    return model


def trained(model: nn.Module, forward: Any) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Logits, gradients and buffers after one pass both ways."""
    x = torch.randn(4 * MEMBERS, 2, 5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    y = forward(x)
    weights = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(2))
    (y * weights).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return y, gradients, dict(model.named_buffers())  # type: ignore[return-value]


def compiled(model: nn.Module, dynamic: bool | None = None) -> Any:
    torch.compiler.reset()
    return torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=dynamic)


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For every norm that goes by members: whether it reads a convolution's output before s."""
    seen: list[bool] = []

    def take_scaling(y: Tensor) -> tuple[Tensor, Tensor | None]:
        z, s = hand_over.take_scaling(y)
        seen.append(s is not None)
        return z, s

    monkeypatch.setattr(memberwise_norm, "take_scaling", take_scaling)
    return seen


@both_norms
def test_compiled_values_gradients_and_statistics_are_those_of_the_plain_path(norm: str, uses: list[bool]) -> None:
    model, twin = ensemble(norm), ensemble(norm)
    plain = trained(model, model)
    assert uses == []  # as it is written, torch's own norms run
    fast = trained(twin, compiled(twin))
    assert uses == [True, False, False]  # a bias, or another operation, stands between
    torch.testing.assert_close(fast, plain, rtol=1e-9, atol=1e-12)


@both_norms
def test_one_graph_for_all_sizes_may_have_several_convolutions(norm: str) -> None:
    model, twin = ensemble(norm), ensemble(norm)
    torch.testing.assert_close(
        trained(twin, compiled(twin, dynamic=True)), trained(model, model), rtol=1e-9, atol=1e-12
    )


class Twice(nn.Module):
    """Both layers are called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.same(torch.relu(self.same(x))).mean((2, 3))


@both_norms
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_norm_may_be_called_twice(norm: str, dynamic: bool | None) -> None:
    torch.manual_seed(0)
    model = be.convert(Twice(), MEMBERS, init="normal", norm=norm).double().train()
    twin = copy.deepcopy(model)
    torch.testing.assert_close(trained(twin, compiled(twin, dynamic)), trained(model, model), rtol=1e-9, atol=1e-12)


@both_norms
def test_a_fast_weight_of_zero_has_the_gradient_of_a_tiny_one(norm: str) -> None:
    model, twin = ensemble(norm), ensemble(norm)
    for one in (model, twin):
        with torch.no_grad():
            one.net.first.r[0, 1] = 0.0
            one.net.first.s[1, 2] = 0.0
    torch.testing.assert_close(trained(twin, compiled(twin)), trained(model, model), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("own", [(), ("statistics",), ("statistics", "affine")], ids=str)
def test_gradients_of_the_function_itself(members: int, own: tuple[str, ...]) -> None:
    def norm(x: Tensor, s: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        shared = "statistics" not in own
        return memberwise_norm.MemberwiseNorm.apply(x, s, weight, bias, 1e-5, shared)[0]  # type: ignore[no-any-return, no-untyped-call]

    affine = (members, 3) if "affine" in own else (3,)
    shapes = (2 * members, 3, 2, 2), (members, 3), affine, affine
    assert torch.autograd.gradcheck(norm, [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes])


@pytest.mark.parametrize("shared", [True, False])
def test_half_precision_is_computed_wide(shared: bool) -> None:
    torch.manual_seed(0)
    s, weight, bias = (torch.rand(shape) + 0.5 for shape in ((MEMBERS, 2), (2,), (2,)))

    def values_and_gradients(x: Tensor, grad: Tensor) -> list[Tensor]:
        inputs = [t.clone().requires_grad_() for t in (x, s, weight, bias)]
        y, *statistics = memberwise_norm.MemberwiseNorm.apply(*inputs, 1e-5, shared)  # type: ignore[no-untyped-call]
        assert y.dtype == x.dtype
        return [y.float(), *statistics, *torch.autograd.grad(y, inputs, grad)]

    x, grad = (torch.randn(8 * MEMBERS, 2, 4, 4).bfloat16() for _ in range(2))
    narrow, wide = values_and_gradients(x + 30, grad), values_and_gradients((x + 30).float(), grad.float())
    for place, (ours, expected) in enumerate(zip(narrow, wide, strict=True)):
        rounded = place in (0, 5)  # y and the gradient of x
        torch.testing.assert_close(ours.float(), expected.bfloat16().float() if rounded else expected)


@both_norms
def test_one_rows_ids_and_evaluation_do_not_go_by_blocks(norm: str, uses: list[bool]) -> None:
    model = ensemble(norm)
    model.net.bare.momentum = 0.1  # torch's own cannot be compiled whole without one
    asked = compiled(model)
    x = torch.randn(6, 2, 5, 5, dtype=torch.float64)
    asked(x, member=torch.tensor([0, 1, 2, 0, 0, 1]))
    asked(x, member=1)
    assert uses == []
    model.eval()
    torch.testing.assert_close(asked(x), copy.deepcopy(model)(x))
    assert uses == ([False] if norm == "member" else [])  # the one without statistics


def test_extracted_networks_have_the_plain_norm() -> None:
    model = ensemble()
    assert type(model.extract(0).norm) is nn.BatchNorm2d
    assert isinstance(model.net.norm, nn.BatchNorm2d)
    assert set(model.net.norm.state_dict()) == set(nn.BatchNorm2d(4).state_dict())


@both_norms
def test_an_evaluated_norm_is_one_scale_and_one_shift(
    norm: str, monkeypatch: pytest.MonkeyPatch, uses: list[bool]
) -> None:
    monkeypatch.setattr(memberwise_norm, "SETTLE_FROM", 0)
    model = ensemble(norm)
    trained(model, model)  # so that the running statistics are not those of a fresh network
    model.eval()
    x = torch.randn(5, 2, 5, 5, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(x), model(x))
    untracked = [False] if norm == "member" else []  # members' own goes by blocks, the shared one is torch's
    assert uses == [True, False, *untracked]  # behind a convolution, behind one with a bias


class Between(nn.Module):
    """Something happens to a convolution's output before the norm reads it."""

    def __init__(self, change: Any) -> None:
        super().__init__()
        self.layer, self.norm, self.change = nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), change

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        changed = self.change(y)
        return self.norm(y if changed is None else changed)  # type: ignore[no-any-return]


def assign(y: Tensor) -> None:
    y[:, 0] = 3


CHANGES = {
    "nothing": lambda y: y,
    "a module in place": nn.ReLU(inplace=True),
    "a method": lambda y: y.mul_(2),
    "a view": lambda y: y.view(-1).relu_().view_as(y),
    "an assignment": assign,
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_written_into_a_convolutions_output_reaches_the_norm(
    change: str, training: bool, monkeypatch: pytest.MonkeyPatch, uses: list[bool]
) -> None:
    monkeypatch.setattr(memberwise_norm, "SETTLE_FROM", 0)
    torch.manual_seed(0)
    model = be.convert(Between(CHANGES[change]), MEMBERS, init="normal", combine="mean").double().train(training)
    other = copy.deepcopy(model)
    y, gradients, buffers = trained(model, model)
    assert_same((y, gradients, buffers), trained(other, compiled(other)))
    assert uses == [change == "nothing"]


def assert_same(first: Any, second: Any) -> None:
    torch.testing.assert_close(first, second)


def test_no_gradient_reaches_s_of_a_convolution_without_gradients() -> None:
    class Frozen(Between):
        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                y = self.layer(x)
            return self.norm(y)  # type: ignore[no-any-return]

    model = be.convert(Frozen(None), MEMBERS, combine="mean").double().train()
    _, gradients, _ = trained(model, compiled(model))
    assert gradients["net.layer.s"] is None
    assert gradients["net.norm.weight"] is not None


@both_norms
@pytest.mark.parametrize("kept", ["track_running_stats", "num_batches_tracked"])
def test_statistics_that_are_not_kept_any_more(kept: str, norm: str) -> None:
    model = be.convert(Between(CHANGES["nothing"]), MEMBERS, combine="mean", norm=norm).double().train()
    setattr(model.net.norm, kept, False if kept == "track_running_stats" else None)
    other = copy.deepcopy(model)
    assert_same(trained(model, model), trained(other, compiled(other)))


@both_norms
@pytest.mark.parametrize("positions", [(), (2,)], ids=str)
def test_what_a_norm_gives_may_be_written_into(positions: tuple[int, ...], norm: str) -> None:
    net = nn.Sequential(nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.LazyLinear(3))
    x = torch.randn(2 * MEMBERS, 4, *positions)
    net(x)
    model = be.convert(net, MEMBERS, norm=norm).train()
    assert_same(model(x), compiled(model)(x))
