"""The contract of a layer: it is its members written out, however rows are given to it."""

import copy
import inspect
import io
import itertools
import re
from functools import partial

import pytest
import torch
from layer_cases import EVERY, NORMS_IN_EVAL, OTHERS, RANK_ONE, Case, M, randomise, whole_batch
from torch import Tensor, nn

import batchensemble as be

N = 4
close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
every_layer = pytest.mark.parametrize("case", EVERY.values(), ids=EVERY)
every_rank_one = pytest.mark.parametrize("case", RANK_ONE.values(), ids=RANK_ONE)
ranks = pytest.mark.parametrize("rank", [1, 2, 3])


def written_out(layer: nn.Module, plain: nn.Module, member: int) -> nn.Module:
    """Torch's own layer with one member's full weight, made entry by entry."""
    weight, groups = layer.weight.detach(), getattr(plain, "groups", 1)
    r, s = (fast[member].reshape(-1, fast.shape[-1]).detach() for fast in (layer.r, layer.s))
    full = torch.zeros_like(weight)
    transposed = isinstance(plain, nn.modules.conv._ConvTransposeNd)
    per_group = (s if transposed else r).shape[1] // groups
    for row, column in itertools.product(range(weight.shape[0]), range(weight.shape[1])):
        group = row // (weight.shape[0] // groups)
        inner, outer = (row, group * per_group + column) if transposed else (group * per_group + column, row)
        full[row, column] = weight[row, column] * (r[:, inner] * s[:, outer]).sum()
    state = {"weight": full} if plain.bias is None else {"weight": full, "bias": layer.bias[member]}
    plain.load_state_dict(state)
    return plain


@ranks
@every_rank_one
def test_a_layer_is_its_members_written_out(case: Case, rank: int) -> None:
    layer, x = case.layer(rank=rank), case.batch(N)
    expected = torch.cat([case.run(written_out(layer, case.plain(), i), x) for i in range(M)])
    close(case.run(layer, whole_batch(x, 0)), expected)


@ranks
@every_rank_one
def test_shapes_are_torchs_and_one_row_per_member(case: Case, rank: int) -> None:
    layer, plain = case.layer(rank=rank), case.plain()
    component = () if rank == 1 else (rank,)
    assert layer.weight.shape == plain.weight.shape
    assert layer.r.shape == (M, *component, case.args[0])
    assert layer.s.shape == (M, *component, case.args[1])
    assert layer.bias is None if plain.bias is None else layer.bias.shape == (M, case.args[1])


@pytest.mark.parametrize("rank", [1, 2])
@every_rank_one
def test_gradients_of_x_w_r_s_and_bias(case: Case, rank: int) -> None:
    layer, (x,) = case.layer(members=2, rank=rank), case.batch(2)
    names = [name for name, _ in layer.named_parameters()]

    def answer(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,), case.call)

    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    assert torch.autograd.gradcheck(answer, (x.requires_grad_(), *values), fast_mode=True)


@every_layer
def test_a_member_extracted_is_that_member(case: Case) -> None:
    layer, x = case.layer().eval(), case.batch(N)
    answers = case.run(layer, whole_batch(x, case.axis)).reshape(M, N, -1)
    for i in range(M):
        plain = layer.plain(i)
        assert type(plain) is getattr(nn, case.kind)
        assert list(plain.state_dict()) == list(case.plain().state_dict())
        assert {k: v.shape for k, v in plain.state_dict().items()} == {
            k: v.shape for k, v in case.plain().state_dict().items()
        }
        close(case.run(plain, x).reshape(N, -1), answers[i])


@every_layer
def test_blocks_one_member_and_ids_agree(case: Case) -> None:
    layer, x = case.layer().eval(), case.batch(N)
    answers = case.run(layer, whole_batch(x, case.axis)).reshape(M, N, -1)
    close(case.routed(layer, whole_batch(x, case.axis), None).reshape(M, N, -1), answers)
    for i in range(M):
        close(case.routed(layer, x, i).reshape(N, -1), answers[i])
    ids = torch.tensor([2, 0, 2, 1])
    close(case.routed(layer, x, ids).reshape(N, -1), answers[ids, torch.arange(N)])


@every_layer
def test_several_rows_inside_for_each_outside(case: Case) -> None:
    layer, (x, *_), ids = case.layer().eval(), case.batch(2 * N), torch.tensor([2, 0, 2, 1])
    inputs = (x,) * case.inputs
    each = case.routed(layer, inputs, torch.tensor([2, 2, 0, 0, 2, 2, 1, 1]))
    close(case.routed(layer, inputs, ids, count=N), each)


@every_layer
def test_a_batch_that_members_cannot_share_is_refused(case: Case) -> None:
    layer, names = case.layer(), rf"{case.kind} has 3 members and got 7 rows"
    if case.kind == "MultiheadAttention":
        names = "Linear has 3 members and got 7 rows"
    with pytest.raises(ValueError, match=names):
        case.run(layer, case.batch(7))


@every_layer
def test_rows_that_are_not_the_batchs_are_refused(case: Case) -> None:
    with pytest.raises(ValueError, match=re.escape("should hold the batch's 5 rows")):
        case.routed(case.layer(), case.batch(6), torch.zeros(5, dtype=torch.long), count=5)


@every_layer
def test_one_member_of_ones_is_the_plain_layer(case: Case) -> None:
    with_fast_weights = case in (RANK_ONE | OTHERS).values() and "Norm" not in case.kind
    layer = case.layer(members=1, **{"init": "ones"} if with_fast_weights else {})
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name.split(".")[-1] in ("r", "s"):
                parameter.fill_(1.0)
    plain, x = layer.plain(0), case.batch(N)
    for ours, theirs in zip(layer.parameters(), plain.parameters(), strict=False):
        assert ours.requires_grad == theirs.requires_grad
    close(case.run(layer.eval(), x), case.run(plain.eval(), x))


@every_layer
def test_state_pickle_and_copies_keep_every_bit(case: Case) -> None:
    layer, x = case.layer().eval(), whole_batch(case.batch(N), case.axis)
    answer, file = case.run(layer, x), io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    other = randomise(case.layer(), seed=5).eval()
    other.load_state_dict(layer.state_dict())
    for twin in (other, copy.deepcopy(layer), torch.load(file, weights_only=False)):
        assert torch.equal(case.run(twin, x), answer)


@every_layer
def test_a_layer_without_values_starts_as_a_new_one(case: Case) -> None:
    layer: nn.Module = getattr(be.nn, case.kind)(*case.args, members=M, **case.options)
    layer.to("meta").to_empty(device="cpu")
    for tensor in (*layer.parameters(), *layer.buffers()):
        tensor.data.fill_(torch.nan if tensor.is_floating_point() else 9)
    for module in layer.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    for name, tensor in layer.state_dict().items():
        kind = name.rpartition(".")[2]
        if kind in ("r", "s"):
            assert bool((tensor.abs() == 1).all())
        elif kind in ("bias", "running_mean", "running_var", "num_batches_tracked"):
            assert torch.equal(tensor, tensor[:1].expand_as(tensor))  # members differ in r and s alone
        assert tensor.isfinite().all()
        assert kind != "num_batches_tracked" or not tensor.any()


@every_layer
def test_the_batch_may_be_empty(case: Case) -> None:
    layer = case.layer().eval()
    assert len(case.routed(layer, case.batch(0), 1)) == 0
    assert len(case.routed(layer, case.batch(0), torch.zeros(0, dtype=torch.long))) == 0


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_a_layer_may_have_no_inputs() -> None:
    """As in torch's `AdaptiveLogSoftmaxWithLoss`, which divides the width of its tails again and again."""
    layer = be.nn.Linear(0, 3, members=M)
    torch.testing.assert_close(layer(torch.ones(2 * M, 0)), layer.bias.repeat_interleave(2, 0))


@pytest.mark.parametrize("case", (OTHERS | NORMS_IN_EVAL).values(), ids=OTHERS | NORMS_IN_EVAL)
def test_gradients_of_the_other_layers(case: Case) -> None:
    layer, (x, *_) = case.layer(members=2).eval(), case.batch(2)
    names = [name for name, _ in layer.named_parameters()]

    def answer(x: Tensor, *values: Tensor) -> Tensor:
        out = torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,) * case.inputs)
        return out[0] if isinstance(out, tuple) else out

    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    x = x.clone().requires_grad_() if x.is_floating_point() else x.clamp(min=1)  # torch stops at the padding word
    assert torch.autograd.gradcheck(answer, (x, *values), fast_mode=True)


@pytest.mark.parametrize("name", ["linear", "linear, positions", "layer norm", "embedding"])
def test_layers_without_a_convention_find_rows_where_the_route_says(name: str) -> None:
    from batchensemble.nn.routing.route import Route, travel

    case = EVERY[name]
    layer, (x,), ids = case.layer(), case.batch(N), torch.tensor([2, 0, 2, 1])
    time_first = torch.stack([x, x.roll(1, 0)])  # (2, N, ...): rows on axis 1
    expected = torch.stack([case.routed(layer, (step,), ids) for step in time_first])
    close(travel(Route(M, N, ids, axis=1), layer, time_first), expected)


@pytest.mark.parametrize("members", [0, -1, 1.0, True, "2"])
@every_layer
def test_members_must_be_a_positive_number(case: Case, members: object) -> None:
    with pytest.raises(ValueError, match="members must be a positive integer"):
        case.layer(members=members)


@pytest.mark.parametrize("rank", [0, -2, 1.5])
def test_rank_must_be_a_positive_number(rank: object) -> None:
    with pytest.raises(ValueError, match="rank must be a positive integer"):
        be.nn.Linear(3, 4, members=2, rank=rank)


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (be.nn.Linear(6, 6, members=3), torch.ones(6)),
        (be.nn.Conv1d(6, 6, 1, members=3), torch.ones(6, 6)),
        (be.nn.Conv2d(6, 6, 1, members=3), torch.ones(6, 6, 6)),
        (be.nn.ConvTranspose2d(6, 6, 1, members=3), torch.ones(6, 6, 6)),
        (be.nn.LayerNorm(6, members=3), torch.ones(6)),
        (be.nn.LSTM(6, 6, members=3), torch.ones(6, 6)),
    ],
)
def test_one_row_without_a_batch_axis_is_refused(layer: nn.Module, x: Tensor) -> None:
    with pytest.raises(ValueError, match="members need a batch"):
        layer(x)


def test_what_is_no_tensor_is_refused() -> None:
    for layer in (nn.Linear(4, 3), nn.Conv1d(4, 3, 1)):
        model = be.convert(layer, members=2)
        with pytest.raises(TypeError, match=r"expects a tensor, got list"):
            model([torch.ones(2, 4, 1), torch.zeros(2)])  # a loader's batch, labels and all


@pytest.mark.parametrize("training", [True, False])
@every_layer
def test_one_feature_is_not_taken_for_all(case: Case, training: bool) -> None:
    """Where torch refuses a shape that r, s or statistics would broadcast against."""
    plain, layer, inputs = case.plain().train(training), case.layer().train(training), case.batch(2 * M)
    for axis in {*range(inputs[0].ndim)} - {case.axis}:
        narrow = tuple(x.narrow(axis, 0, 1) for x in inputs)
        try:
            case.run(plain, narrow)
        except (RuntimeError, ValueError, AssertionError):
            for owner in (None, 1, torch.arange(2 * M) % M):
                with pytest.raises((ValueError, RuntimeError)):
                    case.routed(layer, narrow, owner)


@every_layer
def test_the_signature_is_torchs(case: Case) -> None:
    ours, theirs = (list(inspect.signature(m.forward).parameters) for m in (case.layer(), case.plain()))
    assert ours == theirs


def test_members_read_like_torchs_layers() -> None:
    """Argument order and names are torch's, so that a layer can be swapped in by hand."""
    assert be.nn.Conv2d(3, 8, 3, 2, 1, members=2).stride == (2, 2)
    assert be.nn.Linear(in_features=3, out_features=4, members=2)(input=torch.ones(2, 3)).shape == (2, 4)
    assert be.nn.LSTM(3, 4, members=2)(input=torch.ones(1, 2, 3))[0].shape == (1, 2, 4)
    assert be.nn.LayerNorm(3, members=2)(input=torch.ones(2, 3)).shape == (2, 3)
    assert be.nn.GroupNorm(1, 3, members=2)(input=torch.ones(2, 3)).shape == (2, 3)
    assert be.nn.Embedding(3, 4, members=2)(input=torch.zeros(2, dtype=torch.long)).shape == (2, 4)
