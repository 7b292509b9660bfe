"""Training: groups of parameters, the mean of losses, the penalty on the mean weight."""

import pytest
import torch
import torch.nn.functional as F
from ensembles import M, convnet, ensemble, images, mlp, rows
from torch import Tensor, nn

import batchensemble as be
from batchensemble.nn.layers.member import member_modules


class Mixture(nn.Module):
    """Every kind of parameter, some of them tied, some frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(5, 4), nn.LSTM(4, 4, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, add_bias_kv=True)
        self.norms = nn.ModuleList([nn.LayerNorm(4), nn.RMSNorm(4), nn.BatchNorm1d(4), nn.GroupNorm(2, 4)])
        self.head, self.token = nn.Linear(4, 5), nn.Parameter(torch.ones(1, 4))
        self.head.weight = self.embed.weight
        self.gain = nn.Parameter(torch.ones(()))


@pytest.mark.parametrize("norm", ["shared", "member"])
@pytest.mark.parametrize("include", [None, "*"])
def test_every_parameter_once_and_in_its_group(norm: str, include: str | None) -> None:
    model = be.convert(Mixture(), members=M, norm=norm, include=include, rank=2)
    groups = be.parameter_groups(model, lr=0.1, weight_decay=0.01, fast_lr_scale=0.5, fast_weight_decay=0.001)
    names = {id(p): name for name, p in model.named_parameters()}
    kinds = {names[id(p)]: group["name"] for group in groups for p in group["params"]}
    assert sum(len(group["params"]) for group in groups) == len(names) == len(kinds)
    for name, kind in kinds.items():
        last = name.split(".")[-1]
        if last in ("r", "s"):
            assert kind == "fast", name
        elif "norms" in name or "bias" in last or last == "gain":
            assert kind == "norm and bias", name
        else:
            assert kind == "slow", name
    options = {group["name"]: (group["lr"], group["weight_decay"]) for group in groups}
    assert options == {"slow": (0.1, 0.01), "fast": (0.05, 0.001), "norm and bias": (0.1, 0.0)}
    torch.optim.AdamW(groups)


class Scale(nn.BatchNorm1d):
    """A norm by its class."""


class MyNorm(nn.Module):
    """A norm by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 4))


class Factors(nn.Module):
    """Weights that only happen to be called r and s, in a module that counts members of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.members = 3
        self.r, self.s = nn.Parameter(torch.ones(3, 2)), nn.Parameter(torch.ones(2, 4))


def test_norms_by_class_or_by_name_and_weights_of_other_meaning() -> None:
    net = nn.Sequential(nn.Linear(4, 4), Scale(4), MyNorm(), Factors(), nn.LayerNorm((3, 4)))
    model = be.convert(net, members=M, norm="member")
    groups = {group["name"]: group["params"] for group in be.parameter_groups(model, lr=0.1, weight_decay=0.01)}
    names = {id(parameter): name for name, parameter in model.net.named_parameters()}
    assert {names[id(p)] for p in groups["slow"]} == {"0.weight", "3.r", "3.s"}
    assert {names[id(p)] for p in groups["fast"]} == {"0.r", "0.s"}


def test_a_plain_network_has_no_fast_group() -> None:
    groups = be.parameter_groups(mlp(), lr=0.1, weight_decay=0.01)
    assert [group["name"] for group in groups] == ["slow", "norm and bias"]


@pytest.mark.parametrize("name", ["lr", "weight_decay", "fast_lr_scale", "fast_weight_decay"])
@pytest.mark.parametrize("number", [-0.1, float("nan")])
def test_negative_numbers_are_refused_here_since_optimisers_do_not_look_at_groups(name: str, number: float) -> None:
    with pytest.raises(ValueError, match=f"^{name} must not be negative, got {number}"):
        be.parameter_groups(mlp(), **{"lr": 0.1, "weight_decay": 0.01, name: number})


def test_a_schedule_keeps_the_ratio_of_rates() -> None:
    optimiser = torch.optim.SGD(be.parameter_groups(ensemble(), lr=0.4, weight_decay=0, fast_lr_scale=0.5), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 1, gamma=0.1)
    optimiser.step()
    schedule.step()
    assert {g["name"]: pytest.approx(g["lr"]) for g in optimiser.param_groups} == {
        "slow": 0.04,
        "fast": 0.02,
        "norm and bias": 0.04,
    }


def test_the_mean_of_losses_is_not_the_loss_of_the_mean() -> None:
    outputs, labels = ensemble().members(rows()), torch.arange(7) % 3
    loss = be.mean_loss(F.cross_entropy, outputs, labels, label_smoothing=0.1)
    each = [F.cross_entropy(output, labels, label_smoothing=0.1) for output in outputs]
    torch.testing.assert_close(loss, sum(each) / M)
    assert not torch.allclose(loss, F.cross_entropy(outputs.mean(0), labels, label_smoothing=0.1))


def test_one_answer_for_each_row_is_not_taken_for_members() -> None:
    answers, labels = ensemble()(rows()), torch.arange(7) % 3
    with pytest.raises(ValueError, match=r"as model.members\(x\) gives them; got outputs \(7, 3\) for targets \(7,\)"):
        be.mean_loss(F.cross_entropy, answers, labels)
    with pytest.raises(ValueError, match="one answer for each row"):
        be.mean_loss(F.mse_loss, answers[:, :1], torch.zeros(7, 1))
    with pytest.raises(ValueError, match="one answer for each row"):
        be.mean_loss(F.cross_entropy, answers, answers.softmax(-1))
    with pytest.raises(ValueError, match="one answer for each row"):
        be.mean_loss(F.mse_loss, answers[:, :1], target=torch.zeros(7, 1))


@pytest.mark.parametrize(
    ("loss", "outputs", "target"),
    [
        (F.mse_loss, (3, 3), (3,)),
        (F.mse_loss, (3, 3, 1), (3, 1)),
        (F.cross_entropy, (3, 3, 3), (3, 3)),
        (F.mse_loss, (1, 1), (1,)),
    ],
)
def test_as_many_rows_as_members_are_no_mistake(loss, outputs, target) -> None:
    answers, wanted = torch.randn(outputs), torch.rand(target)
    torch.testing.assert_close(
        be.mean_loss(loss, answers, wanted), sum(loss(o, wanted.view_as(o)) for o in answers) / len(answers)
    )


@pytest.mark.parametrize(("members", "n", "size"), [(3, 3, 3), (1, 1, 1), (3, 7, 3)])
def test_a_loss_of_more_outputs_than_targets(members: int, n: int, size: int) -> None:
    def gaussian(output: Tensor, target: Tensor) -> Tensor:
        mean, log_variance = output.chunk(2, -1)
        return F.gaussian_nll_loss(mean, target, log_variance.exp())

    outputs, target = torch.randn(members, n, 2 * size), torch.randn(n, size)
    expected = sum(gaussian(output, target) for output in outputs) / members
    torch.testing.assert_close(be.mean_loss(gaussian, outputs, target), expected)


def test_one_answer_for_each_step_is_not_taken_for_members() -> None:
    for steps in (5, 7):
        with pytest.raises(ValueError, match="one answer for each row"):
            be.mean_loss(F.mse_loss, torch.randn(7, steps, 1), torch.zeros(7, steps))
    with pytest.raises(ValueError, match="one answer for each row"):
        be.mean_loss(F.cross_entropy, torch.randn(7, 5, 3), torch.zeros(7, 5, dtype=torch.int64))


@pytest.mark.parametrize("rank", [1, 2])
def test_the_penalty_is_the_squared_norm_of_the_mean_weight(rank: int) -> None:
    model = ensemble(convnet(), rank=rank)
    members = [model.extract(i) for i in range(M)]
    expected = sum(torch.stack([plain[at].weight for plain in members]).mean(0).square().sum() for at in (0, 5))
    torch.testing.assert_close(be.mean_weight_penalty(model), expected)
    be.mean_weight_penalty(model).backward()
    assert all(model.net[i].r.grad.abs().sum() > 0 for i in (0, 5))


@pytest.mark.parametrize("net", [nn.MultiheadAttention(4, 2), nn.LSTM(4, 4, bias=False)])
def test_the_penalty_of_composed_layers(net: nn.Module) -> None:
    model = ensemble(net, combine="mean")
    weights = [p for name, p in model.extract_mean().named_parameters() if "weight" in name]
    torch.testing.assert_close(be.mean_weight_penalty(model), sum(w.square().sum() for w in weights))


def test_the_penalty_of_complex_weights_is_real() -> None:
    model = be.convert(nn.Linear(2, 2, dtype=torch.complex64), M, init="ones")
    torch.testing.assert_close(be.mean_weight_penalty(model), model.net.weight.abs().square().sum())


def test_nothing_to_penalise() -> None:
    with pytest.raises(ValueError, match="no converted layer"):
        be.mean_weight_penalty(mlp())


def test_an_ordinary_training_loop_learns() -> None:
    torch.manual_seed(0)
    x, y = rows(60), torch.arange(60) % 3
    x = x + F.one_hot(y, 4)
    model = be.convert(mlp(), members=M, generator=torch.Generator().manual_seed(0))
    optimiser = torch.optim.Adam(be.parameter_groups(model, lr=0.05, weight_decay=1e-4))
    first = None
    for _ in range(60):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        first = first or loss.item()
    assert loss.item() < first / 2
    assert all(p.grad is not None for p in model.parameters())


def test_images_too() -> None:
    model = ensemble(convnet()).train()
    F.cross_entropy(model(images(9)), torch.arange(9) % 3).backward()
    assert all(
        (p.grad[i] != 0).any() for i in range(M) for n, p in model.named_parameters() if n.endswith((".r", ".s"))
    )


@pytest.mark.parametrize("norm", ["shared", "member"])
@pytest.mark.parametrize("members", [1, 2, 4, 5])  # also as many as some layer has features
def test_what_members_share_is_frozen_and_nothing_else(norm: str, members: int) -> None:
    model = be.convert(Mixture(), members=members, norm=norm)
    be.freeze_shared_(model)
    own = {id(tensor) for _, module in member_modules(model.net) for _, tensor in module.stacked_tensors()}
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == (id(parameter) in own), name
    assert not model.net.attention.q_proj.weight.requires_grad
    assert model.net.attention.q_proj.r.requires_grad
    assert model.net.norms[0].weight.requires_grad == (norm == "member")


def test_mean_loss_names_the_tensor_that_it_needs() -> None:
    with pytest.raises(TypeError, match=r"got dict: name it, as model\.members\(x\)\.logits; .*several outputs"):
        be.mean_loss(F.cross_entropy, {"logits": torch.zeros(2, 3, 4)}, torch.zeros(3))  # type: ignore[arg-type]


def test_mean_loss_takes_the_loss_first() -> None:
    with pytest.raises(TypeError, match=r"the loss comes first, .* got Tensor"):
        be.mean_loss(torch.zeros(2, 3, 4), F.cross_entropy, torch.zeros(3))  # type: ignore[arg-type]
