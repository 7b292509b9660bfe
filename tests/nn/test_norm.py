"""Batch norm per member against as many of torch's own: statistics, counters, gradients."""

import copy
import warnings
from functools import partial
from typing import Any

import pytest
import torch
from layer_cases import M, randomise
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import batchensemble as be
from batchensemble.lifelong.statistics import own_statistics_
from batchensemble.nn.layers.norm import MANY_SINGLES
from batchensemble.nn.routing.route import Route, travel

C = 4
close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
BATCHES = {"1d": (C,), "1d, positions": (C, 3), "2d": (C, 2, 3), "3d": (C, 2, 1, 2)}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "mean of all batches": {"momentum": None},
    "never updated": {"momentum": 0.0},
    "no statistics": {"track_running_stats": False},
    "no affine": {"affine": False},
    "neither": {"affine": False, "track_running_stats": False},
}
OWNERS = {
    "blocks": None,
    "ids": torch.tensor([2, 0, 2, 1, 1, 0, 2, 2, 0]),
    "a member without rows": torch.tensor([2, 0, 2, 0, 0, 0, 2, 2, 0]),
    "one member": 1,
}
N = 9
every_shape = pytest.mark.parametrize("kind", BATCHES)
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
every_owner = pytest.mark.parametrize("owner", OWNERS.values(), ids=OWNERS)


def norm(kind: str, options: dict[str, Any]) -> nn.Module:
    layer = randomise(getattr(be.nn, f"BatchNorm{kind[:2]}")(C, members=M, **options).double())
    layer.routed = True
    return layer


def batch(kind: str, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(N, *BATCHES[kind], generator=generator, dtype=torch.float64) * 3 + 1


def ids_of(owner: Any) -> Tensor:
    if owner is None:
        return torch.arange(M).repeat_interleave(N // M)
    return owner if isinstance(owner, Tensor) else torch.full((N,), owner)


@every_owner
@every_option
@every_shape
def test_training_and_evaluation_are_those_of_separate_norms(kind: str, options: dict[str, Any], owner: Any) -> None:
    layer, ids = norm(kind, options), ids_of(owner)
    separate = [layer.plain(i).train() for i in range(M)]
    for step in range(3):
        x = batch(kind, step)
        y = travel(Route(M, N, owner), layer, x)
        for i in ids.unique().tolist():
            close(y[ids == i], separate[i](x[ids == i]))
    for i, plain in enumerate(separate):  # members without rows keep theirs
        ours = layer.plain(i).state_dict()
        for name, tensor in plain.state_dict().items():
            close(ours[name], tensor, msg=lambda text, name=name: f"{name}: {text}")
    x = batch(kind, 9)
    layer.eval()
    answer = travel(Route(M, N, owner), layer, x)
    for i in ids.unique().tolist():
        close(answer[ids == i], separate[i].eval()(x[ids == i]))


@pytest.mark.parametrize("owner", [None, torch.tensor([0, 1, 2])], ids=["blocks", "ids"])
def test_a_single_value_has_no_variance_to_remember(owner: Any) -> None:
    layer = norm("1d", {})
    before = {name: tensor.clone() for name, tensor in layer.named_buffers()}
    y = travel(Route(M, M, owner), layer, batch("1d", 0)[:M])
    close(y, layer.bias)  # it is its own mean
    assert all(torch.equal(tensor, before[name]) for name, tensor in layer.named_buffers())


@pytest.mark.parametrize("n", [M, M + 1])
def test_single_values_in_batch_after_batch_are_warned_of_once(n: int) -> None:
    model = be.convert(nn.Sequential(nn.Linear(3, C), nn.BatchNorm1d(C)), M, norm="member").train()
    few, enough = torch.randn(n, 3), torch.randn(2 * M, 3)
    for x in (few, enough, few, torch.randn(2 * M + 1, 3), *[few] * (MANY_SINGLES - 1)):
        model(x)
    with pytest.warns(UserWarning, match=rf"layer '1' \(BatchNorm1d\) gets a single value.* {2 * M} in a split batch"):
        model(few)
    model(few)
    model.eval()(few)
    assert "singles" not in vars(model.extract(0)[1])


def test_the_last_batch_of_an_epoch_may_be_so_small_and_come_several_times() -> None:
    model = be.convert(nn.Sequential(nn.Linear(3, C), nn.BatchNorm1d(C)), M, norm="member").train()
    for x in (torch.randn(2 * M, 3), torch.randn(M + 1, 3)) * 2:
        for view in (x, x + 0.1):
            checkpoint(model, view, use_reentrant=False).sum().backward()


def test_a_single_row_has_many_values_where_it_has_positions() -> None:
    model = be.convert(nn.Sequential(nn.Conv1d(3, C, 1), nn.BatchNorm1d(C)), M, norm="member").train()
    for _ in range(3):
        model(torch.randn(M, 3, 2))


@pytest.mark.filterwarnings("ignore:var_mean")  # of nothing
@pytest.mark.parametrize("owner", [None, torch.tensor([], dtype=torch.long)], ids=["blocks", "ids"])
def test_a_batch_without_rows_leaves_the_statistics(owner: Any) -> None:
    layer = norm("1d", {})
    before = {name: tensor.clone() for name, tensor in layer.named_buffers()}
    assert travel(Route(M, 0, owner), layer, batch("1d", 0)[:0]).shape == (0, C)
    assert all(torch.equal(tensor, before[name]) for name, tensor in layer.named_buffers())


@every_owner
@pytest.mark.parametrize("norm", ["member", "shared"])
def test_statistics_that_are_no_longer_tracked_stay_in_training_as_in_torchs_own(norm: str, owner: Any) -> None:
    model = be.convert(nn.Sequential(nn.Linear(3, C), nn.BatchNorm1d(C)), M, norm=norm)
    own_statistics_(model)  # of norms that are shared
    model.net[1].track_running_stats = False
    before = {name: tensor.clone() for name, tensor in model.net[1].named_buffers()}
    ids, x = ids_of(owner), torch.randn(N, 3)
    y = model.train()(x, member=ids if owner is None else owner)
    for i in ids.unique().tolist():
        close(y[ids == i], model.extract(i).train()(x[ids == i]), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.net[1].named_buffers())


@pytest.mark.parametrize("layer", [be.nn.BatchNorm1d(C, members=M), be.nn.GroupNorm(2, C, members=M)], ids=str)
def test_norms_of_channels_have_their_rows_in_front_wherever_the_network_has_them(layer: nn.Module) -> None:
    layer, x = copy.deepcopy(layer).double().eval(), batch("1d, positions", 0)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(M * C).reshape(M, C))
    layer.routed = True
    expected = travel(Route(M, N, None), layer, x)
    close(travel(Route(M, N, None, axis=1), layer, x), expected)


@pytest.mark.parametrize("rest", [M - 1, M, M + 1])
def test_a_last_batch_of_about_one_row_for_each_member_does_not_stop_a_loop(rest: int) -> None:
    model = be.convert(nn.Sequential(nn.Linear(3, C), nn.BatchNorm1d(C), nn.Linear(C, 1)), members=M, norm="member")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "a batch of 2 rows for 3 members")
        for x in torch.randn(2 * N + rest, 3).split(N):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    assert all(tensor.isfinite().all() for tensor in (*model.parameters(), *model.buffers()))


@every_owner
def test_gradients_are_those_of_separate_norms(owner: Any) -> None:
    layer, ids, x = norm("2d", {}), ids_of(owner), batch("2d", 0).requires_grad_()
    separate = [layer.plain(i).train() for i in range(M)]
    weights = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).reshape(x.shape)
    gradient, scale, shift = torch.autograd.grad(
        (travel(Route(M, N, owner), layer, x) * weights).sum(), [x, layer.weight, layer.bias]
    )
    for i in ids.unique().tolist():
        mine = ids == i
        plain = separate[i]
        loss = (plain(x[mine]) * weights[mine]).sum()
        expected, scales, shifts = torch.autograd.grad(loss, [x, plain.weight, plain.bias])
        close(gradient[mine], expected[mine])
        close(scale[i], scales)
        close(shift[i], shifts)


@every_owner
@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_a_pass_do_not_change_by_statistics_that_later_passes_leave(training: bool, owner: Any) -> None:
    layer = norm("2d", {}).train(training)
    alone, x = copy.deepcopy(layer), batch("2d", 1).requires_grad_()
    y, expected = (travel(Route(M, N, owner), each, x) for each in (layer, alone))
    layer.train()
    for later in OWNERS.values():
        travel(Route(M, N, later), layer, batch("2d", 2))
    close(*(torch.autograd.grad(answer.cos().sum(), x)[0] for answer in (y, expected)))


@every_owner
@pytest.mark.parametrize("momentum", [0.1, None])
def test_statistics_without_a_counter_are_kept_as_torch_keeps_them(momentum: float | None, owner: Any) -> None:
    layer: Any = norm("2d", {"momentum": momentum})
    layer.num_batches_tracked = None
    separate: Any = [layer.plain(i) for i in range(M)]
    x, ids = batch("2d", 1), ids_of(owner)
    travel(Route(M, N, owner), layer, x)
    for i in ids.unique().tolist():
        separate[i](x[ids == i])
    close(layer.running_mean, torch.stack([one.running_mean for one in separate]))
    close(layer.running_var, torch.stack([one.running_var for one in separate]))


@pytest.mark.parametrize("owner", [None, 1], ids=["blocks", "one member"])
def test_statistics_of_several_ensembles_are_updated_under_vmap(owner: Any) -> None:
    layer = norm("2d", {})
    separate: list[Any] = [copy.deepcopy(layer) for _ in range(2)]
    inputs = torch.stack([batch("2d", seed) for seed in range(2)])
    buffers = {name: torch.stack([buffer, buffer]) for name, buffer in layer.named_buffers()}

    def pass_(buffers: dict[str, Tensor], x: Tensor) -> Tensor:
        answer: Tensor = travel(Route(M, N, owner), torch.func.functional_call, layer, buffers, x)
        return answer

    y = torch.vmap(pass_)(buffers, inputs)
    close(y, torch.stack([travel(Route(M, N, owner), *pair) for pair in zip(separate, inputs, strict=True)]))
    for name, buffer in buffers.items():
        close(buffer, torch.stack([getattr(one, name) for one in separate]))


def test_dealt_blocks_in_an_ensemble_update_each_member_by_its_own_rows() -> None:
    net = nn.Sequential(nn.Linear(3, C), nn.BatchNorm1d(C)).double()
    model = randomise(be.convert(net, members=M, norm="member")).train()
    plains = [model.extract(i).train() for i in range(M)]
    x = torch.randn(7, 3, dtype=torch.float64)
    y, owners = model(x), torch.arange(7) * M // 7
    for i, plain in enumerate(plains):
        close(y[owners == i], plain(x[owners == i]))
        close(model.extract(i)[1].running_var, plain[1].running_var)


def test_shared_norms_mix_members_in_training_and_not_in_evaluation() -> None:
    net = nn.Sequential(nn.Linear(3, C), nn.BatchNorm1d(C)).double()
    model = randomise(be.convert(net, members=M)).train()
    x = torch.randn(6, 3, dtype=torch.float64)
    assert not torch.allclose(model(x, member=0)[:2], model(x)[:2])
    be.verify(model.eval(), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_statistics_are_computed_wide(dtype: torch.dtype) -> None:
    plain = nn.BatchNorm2d(2)
    layer = be.nn.BatchNorm2d(2, members=1)
    x = (torch.randn(64, 2, 8, 8) * 2 + 30).to(dtype)
    ours, theirs = layer(x), plain(x)
    assert ours.dtype == dtype
    close(layer.running_mean[0], plain.running_mean, rtol=1e-3, atol=1e-3)
    close(layer.running_var[0], plain.running_var, rtol=1e-3, atol=1e-3)
    assert (ours.float() - theirs.float()).abs().max() < 0.1
    assert (ours.float() - theirs.float()).abs().mean() < 0.02


@every_owner
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_half_precision_a_norm_is_as_exact_as_torchs_own(dtype: torch.dtype, owner: Any) -> None:
    layer: Any = norm("2d", {}).eval()
    layer.running_mean.copy_(3 + torch.rand(M, C))
    layer.running_var.copy_(0.1 * torch.rand(M, C) + 0.05)
    layer, ids = layer.to(dtype), ids_of(owner)
    x = (3 + 0.3 * torch.randn(N, C, 16, 16)).to(dtype)
    ours = travel(Route(M, N, owner), layer, x).double()
    for i in ids.unique().tolist():
        mine, plain = ids == i, layer.plain(i)
        exact = copy.deepcopy(plain).double()(x[mine].double())
        error, torchs = ((y - exact).abs().mean() for y in (ours[mine], plain(x[mine]).double()))
        assert error < 1.2 * torchs


def test_norms_of_one_network_are_not_touched_by_another() -> None:
    net = nn.Sequential(nn.Linear(3, C), nn.BatchNorm1d(C))
    before = copy.deepcopy(net.state_dict())
    be.convert(net, members=M, norm="member").train()(torch.randn(6, 3))
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize("kind", ["BatchNorm1d", "BatchNorm2d"])
def test_torchs_own_check_of_the_shape(kind: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        getattr(be.nn, kind)(C, members=M)(torch.ones(3, C, 2, 2, 2))


NORMS = [
    nn.BatchNorm1d(C, affine=False),
    nn.BatchNorm1d(C, affine=False, track_running_stats=False),
    nn.LayerNorm(C, elementwise_affine=False),
    nn.LayerNorm(C, bias=False),
    nn.RMSNorm(C),
    nn.GroupNorm(2, C),
]


@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_norms_with_little_of_their_own_are_converted_too(norm: nn.Module) -> None:
    net = nn.Sequential(nn.Linear(3, C), norm)
    assert be.convert(net, members=M, norm="member").conversion.converted == ("0", "1")
    assert be.convert(net, members=M).conversion.left == {"1": "norm='shared'"}


@pytest.mark.parametrize("norm", [nn.InstanceNorm1d(C, affine=True), nn.SyncBatchNorm(C)], ids=str)
def test_other_norms_are_left_with_a_reason(norm: nn.Module) -> None:
    left = be.convert(nn.Sequential(nn.Linear(3, C), norm), members=M, norm="member").conversion.left
    assert left["1"] == f"there is no form of {type(norm).__name__} with members"
