"""Calling an ensemble: dealing, routing, combining, predicting."""

import inspect
from functools import partial
from typing import Any

import pytest
import torch
from ensembles import IDS, M, N, convnet, ensemble, images, mlp, rows
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import batchensemble as be
from batchensemble.nn.routing.route import current

close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-5)

# ---- dealing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 100])
def test_rows_are_dealt_evenly_and_in_order(n: int) -> None:
    model, x = ensemble().train(), rows(n)
    owners = torch.arange(n) * M // n
    assert owners.bincount(minlength=M).max() - owners.bincount(minlength=M).min() <= 1
    close(model(x), model.members(x)[owners, torch.arange(n)])


def test_one_member_is_one_network() -> None:
    model = ensemble(members=1)
    close(model(rows()), model.extract(0)(rows()).log_softmax(-1))
    close(model.train()(rows()), model.extract(0)(rows()))
    be.verify(model, rows())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.filterwarnings("ignore:a batch of 0 rows for")
def test_an_empty_batch(training: bool) -> None:
    model, x = ensemble(convnet()).train(training), images(0)
    model.net[1].eval()  # torch's own batch norm refuses to train on nothing
    assert model(x).shape == (0, 3)
    assert model.members(x).shape == (M, 0, 3)
    assert model(x, member=1).shape == (0, 3)
    assert model(x, member=torch.zeros(0, dtype=torch.long)).shape == (0, 3)
    assert len(model.predict(x)) == 0


class Fewer(nn.Module):
    """Lets its layer see a part of the rows only, and answers for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x[: len(x) // M]).repeat(M, 1)


def test_a_layer_that_does_not_see_every_members_rows_is_refused() -> None:
    with pytest.raises(ValueError, match=f"should hold the batch's {2 * M * M} rows"):
        ensemble(Fewer()).members(rows(2 * M))


def test_equal_blocks_need_no_ids() -> None:
    model, owners = ensemble().train(), []
    model.net[0].register_forward_pre_hook(lambda *_: owners.append(current().owner))
    model(rows(2 * M))
    assert owners == [None]


def test_ids_in_training_and_in_evaluation_are_one_function() -> None:
    model, x = ensemble(), rows()
    expected = model.members(x)[IDS, torch.arange(N)]
    close(model(x, member=IDS), expected)
    close(model.train()(x, member=IDS), expected)


def test_gradients_through_members() -> None:
    model, x = ensemble(), rows().requires_grad_()
    model.members(x).square().sum().backward()
    twin = x.detach().clone().requires_grad_()
    for i in range(M):
        model.extract(i)(twin).square().sum().backward()
    close(x.grad, twin.grad)


# ---- rows on another axis --------------------------------------------------------------------------------------------


class TimeFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(4, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        features, state = self.gru(x)
        return {"logits": self.head(features), "state": state}


@pytest.mark.parametrize("class_dim", [-1, 2])
def test_sequence_first(class_dim: int) -> None:
    model = ensemble(TimeFirst(), batch_dim=1, class_dim=class_dim)
    x = torch.randn(5, N, 4)
    members, out = model.members(x), model(x)
    assert members["logits"].shape == (M, 5, N, 3)
    assert members["state"].shape == (M, 1, N, 5)
    close(out["logits"], members["logits"].softmax(-1).mean(0).log())
    mixed = torch.stack([members["logits"][i, :, n] for n, i in enumerate(IDS.tolist())], 1)
    close(model(x, member=IDS)["logits"], mixed)
    prediction = model.predict(x, batch_size=2)
    assert prediction.outputs.shape == (M, N, 5, 3)
    close(prediction.outputs, members["logits"].transpose(1, 2))
    assert prediction.entropy.shape == (N, 5)
    owners = torch.arange(N) * M // N
    dealt = torch.stack([members["logits"][i, :, n] for n, i in enumerate(owners.tolist())], 1)
    close(model.train()(x)["logits"], dealt)
    be.verify(model, x)


def test_a_rule_may_answer_a_sequence_with_a_number_for_each_row() -> None:
    model = ensemble(TimeFirst(), batch_dim=1, combine=lambda outputs: outputs.amax((0, 2, 3)))
    x = torch.randn(5, N, 4)
    expected = model.members(x)["logits"].amax((0, 1, 3))
    close(model(x)["logits"], expected)
    close(model.predict(x).combined, expected)


def test_classes_in_front_of_the_rows() -> None:
    net = nn.Sequential(TimeFirst(), Transposed())
    model = ensemble(net, batch_dim=1, class_dim=0)
    x = torch.randn(5, N, 4)
    close(model(x).exp().sum(0), torch.ones(N, 5))  # (classes, rows, time)


@pytest.mark.parametrize("class_dim", [1, -2])
def test_classes_on_the_axis_of_the_rows_are_refused(class_dim: int) -> None:
    model, x = ensemble(TimeFirst(), batch_dim=1, class_dim=class_dim), torch.randn(5, N, 4)
    for call in (model, model.predict):
        with pytest.raises(ValueError, match="holds the rows"):
            call(x)


class Transposed(nn.Module):
    def forward(self, out: dict[str, Tensor]) -> Tensor:
        return out["logits"].permute(2, 1, 0)


def test_help_speaks_of_members_and_of_the_networks_inputs() -> None:
    forward = ensemble().forward
    assert "member: who answers" in forward.__doc__
    assert list(inspect.signature(forward).parameters) == ["input", "member"]


# ---- predict ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 1, 2, 7, 100])
def test_predict_in_pieces(batch_size: int | None) -> None:
    model, x = ensemble(convnet()), images()
    close(model.predict(x, batch_size=batch_size).outputs, model.members(x).detach())


class Prototypes(nn.Module):
    """Distances of every row to K points that all rows share."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor, prototypes: Tensor) -> Tensor:
        return (self.layer(x)[:, None] - prototypes).square().sum(-1).sort(1).values[:, :2]


@pytest.mark.parametrize("batch_size", [4, 6])  # a piece, or what is left, is as long as what rows share
def test_a_piece_takes_nothing_shared_for_rows(batch_size: int) -> None:
    model, inputs = ensemble(Prototypes(), combine="mean"), (rows(10), rows(4, 3))
    close(model.predict(*inputs, batch_size=batch_size).outputs, model.members(*inputs).detach())


def test_predict_is_evaluation_without_gradients_in_training_too() -> None:
    model, x = ensemble(convnet()), images()
    expected = model.members(x)
    outputs = model.train().predict(x).outputs
    close(outputs, expected.detach())
    assert expected.requires_grad
    assert not outputs.requires_grad


def test_predict_restores_every_module() -> None:
    model = ensemble(convnet()).train()
    model.net[1].eval()  # a frozen norm
    model.predict(images())
    be.verify(model, images())
    assert model.training
    assert model.net[0].training
    assert not model.net[1].training
    with pytest.raises(RuntimeError):
        model.predict(torch.ones(2, 5, 4, 4))
    assert model.training


class Stateful(nn.Module):
    """Rows on axis 1 of a state, or twice on axis 0 of a mask, where no part of a batch is cut out."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.attention = nn.GRU(4, 4, batch_first=True), nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor, state: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        y, _ = self.gru(x, state)
        return self.attention(y, y, y, attn_mask=mask)[0]


@pytest.mark.parametrize("name", ["state", "mask"])
@pytest.mark.parametrize("batch_size", [2, 4])  # with copies for all members 2 rows are as many as the batch has
def test_what_no_part_can_be_cut_out_of_is_refused(name: str, batch_size: int) -> None:
    model, x = ensemble(Stateful(), combine="mean"), torch.randn(2 * M, 5, 4)
    given = {"state": torch.randn(1, 2 * M, 4), "mask": torch.randn(4 * M, 5, 5)}[name]
    close(model.predict(x, **{name: given}, batch_size=2 * M).outputs, model.members(x, **{name: given}).detach())
    with pytest.raises(ValueError, match=f"and {name} of shape"):
        model.predict(x, **{name: given}, batch_size=batch_size)


@pytest.mark.parametrize("name", ["state", "mask"])
def test_a_part_is_never_taken_for_the_rows_of_what_is_named_as_shared(name: str) -> None:
    model, x = ensemble(Stateful(), combine="mean", shared_inputs=name), torch.randn(2 * M, 5, 4)
    given = {"state": torch.randn(1, 2 * M, 4), "mask": torch.randn(4 * M, 5, 5)}[name]
    with pytest.raises(ValueError, match=f"and {name} of shape .* choose another batch_size"):
        model.predict(x, **{name: given}, batch_size=2)
    table = torch.randn(5, 5)  # for all rows
    parts = model.predict(x, mask=table, batch_size=2).outputs
    close(parts, model.members(x, mask=table).detach())


@pytest.mark.parametrize("shared", ["src_key_padding_mask", ()])
def test_a_padding_mask_beside_time_first_inputs_is_not_cut(shared: Any) -> None:
    model = ensemble(nn.TransformerEncoderLayer(4, 2, 8), combine="mean", batch_dim=1, shared_inputs=shared)
    x, mask = torch.randn(5, 2 * M, 4), torch.arange(5) > torch.arange(1, 2 * M + 1)[:, None]
    assert len(model.predict(x, src_key_padding_mask=mask)) == 2 * M
    with pytest.raises(ValueError, match="and src_key_padding_mask of shape"):
        model.predict(x, src_key_padding_mask=mask, batch_size=2)


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, True])
def test_batch_size_must_be_positive(batch_size: Any) -> None:
    with pytest.raises(ValueError, match="batch_size must be a positive integer"):
        ensemble().predict(rows(), batch_size=batch_size)


# ---- networks that work in place -------------------------------------------------------------------------------------


class InPlace(nn.Module):
    """Layers without bias whose answers are changed in place: by a ReLU, by a residual."""

    def __init__(self, inplace: bool, kind: type[nn.Module], **options: Any) -> None:
        super().__init__()
        self.first, self.second = kind(4, 4, bias=False, **options), kind(4, 4, bias=False, **options)
        self.relu, self.inplace = nn.ReLU(inplace), inplace

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.first(x))
        y = self.second(x)
        if self.inplace:
            y += x
            return y
        return y + x


@pytest.mark.parametrize("n", [2 * M, N])
@pytest.mark.parametrize("size", [2, 16])  # few positions, and many: another plan
@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d, nn.Linear])
def test_work_in_place(kind: type[nn.Module], size: int, n: int) -> None:
    options = {} if kind is nn.Linear else {"kernel_size": 1}
    shape = (n, size * size, 4) if kind is nn.Linear else (n, 4, size, size)
    both = [ensemble(InPlace(inplace, kind, **options), combine="mean").train() for inplace in (True, False)]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    for model in both:
        for answer in (model(x), model(x, member=1), model.members(x)):
            answer.square().mean().backward()
    for ours, theirs in zip(both[0].parameters(), both[1].parameters(), strict=True):
        close(ours.grad, theirs.grad)


# ---- a thousand members ----------------------------------------------------------------------------------------------


class Largest(TorchDispatchMode):
    """The size of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **kwargs or {})
        for tensor in torch.utils._pytree.tree_leaves(out):
            if isinstance(tensor, Tensor):
                self.size = max(self.size, tensor.numel())
        return out


def test_a_thousand_members_make_no_weight_of_their_own() -> None:
    net = nn.Sequential(nn.Conv2d(8, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Linear(64, 64))
    members, n = 1000, 256
    model = be.convert(net, members=members, norm="member").train()
    x = torch.randn(n, 8, 3, 3)
    ids = torch.randperm(members)[:n]
    weight = model.net[0].weight.numel()
    with Largest() as seen:
        y = model(x, member=ids)
        y.square().mean().backward()
    # r, s and statistics (members, features), activations (rows, features, positions): nothing above them
    assert seen.size <= max(members * 64, n * 8 * 9, n * 64)
    assert seen.size < n * weight / 10
    assert y.shape == (n, 64)
    ids = ids[:3]
    model.eval()
    for row, i in enumerate(ids.tolist()):
        close(model(x[:3], member=ids)[row], model.extract(i).eval()(x[:3])[row])


def test_one_of_a_thousand_costs_one_weight() -> None:
    model = be.convert(nn.Linear(64, 64), members=1000, combine=None).eval()
    with Largest() as seen:
        model(torch.randn(32, 64), member=77)
    assert seen.size <= 64 * 64


# ---- passing for the network -----------------------------------------------------------------------------------------


def test_it_looks_like_its_network() -> None:
    model = ensemble(mlp().double())
    assert model.dtype == torch.float64
    assert model.device == torch.device("cpu")
    assert len(model) == M
    assert model
    assert f"members={M}" in repr(model)
    assert "combine='softmax'" in repr(model)
    with pytest.raises(AttributeError):
        _ = model.config


@pytest.mark.parametrize("combine", ["softmax", "vote"])
def test_one_class_or_the_rows_cannot_be_classes(combine: str) -> None:
    with pytest.raises(ValueError, match="one class"):
        ensemble(mlp(outputs=1), combine=combine)(rows())
    with pytest.raises(ValueError, match="holds the rows"):
        ensemble(combine=combine, class_dim=0)(rows())
    with pytest.raises(ValueError, match="no axis"):
        ensemble(combine=combine, class_dim=5)(rows())


@pytest.mark.parametrize("training", [False, True])
def test_members_with_nothing_in_common_are_asked_by_name(training: bool) -> None:
    model = be.convert(nn.Linear(4, 3), members=2, combine=None).train(training)
    with pytest.raises(ValueError, match="name one, or one per row, with member="):
        model(torch.randn(6, 4))
    assert model(torch.randn(6, 4), member=1).shape == (6, 3)


def test_predict_asks_all_members() -> None:
    for ask in (ensemble().predict, ensemble().members):
        with pytest.raises(TypeError, match=r"ask all members; .* model\(x, member=...\)"):
            ask(rows(), member=1)


def test_converted_layers_say_how_many_members_they_have() -> None:
    shown = repr(be.convert(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), members=2, norm="member"))
    assert "Linear(in_features=4, out_features=3, bias=True, members=2)" in shown
    assert shown.count("members=2") == 3
