"""`convert` and what it is told, `load` and what it is given."""

import copy
import inspect
import re
from pathlib import Path
from types import MethodType

import pytest
import torch
from ensembles import M, TiedWeights, convnet, ensemble, images, mlp, randomise, rows
from torch import nn
from torch.nn.utils import prune

import batchensemble as be


def test_the_network_is_untouched() -> None:
    net = randomise(convnet())
    before, kinds = copy.deepcopy(net.state_dict()), [type(m) for m in net.modules()]
    model = be.convert(net, members=M, norm="member", fan_out="5").train()
    model(images()).sum().backward()
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert [type(m) for m in net.modules()] == kinds
    assert all(p.grad is None for p in net.parameters())
    assert not any(m._forward_pre_hooks for m in net.modules())


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_the_networks_module_by_module(training: bool) -> None:
    net = convnet().train(training)
    net[1].train(not training)
    model = be.convert(net, members=M)
    assert model.training is training
    assert model.net[1].training is not training


def test_only_networks_are_converted_and_loaded_into() -> None:
    for take in (lambda net: be.convert(net, members=M), lambda net: be.load("model.safetensors", net)):
        with pytest.raises(TypeError, match=r"expected a network, a torch.nn.Module, got str"):
            take("resnet18")
        with pytest.raises(TypeError, match="got the class Linear: make one of it first"):
            take(nn.Linear)
        with pytest.raises(TypeError, match="got OrderedDict"):
            take(mlp().state_dict())
        with pytest.raises(TypeError, match="got TorchScript, whose layers cannot be replaced"):
            take(torch.jit.trace(mlp(), rows()))
        with pytest.raises(TypeError, match=r"got TorchScript in '0\.0', whose layers"):
            take(nn.Sequential(nn.Sequential(torch.jit.trace(mlp(), rows())), nn.Linear(4, 2)))


@pytest.mark.filterwarnings("ignore:.torch.jit.script")
def test_a_scripted_part_without_parameters_stays_what_it_is() -> None:
    net = nn.Sequential(nn.Linear(4, 5), torch.jit.script(nn.ReLU()), nn.Linear(5, 3))
    model = be.convert(net, members=2)
    be.verify(model, rows())
    assert torch.allclose(model.extract(1).eval()(rows()), model.eval().members(rows())[1], atol=1e-6)


@pytest.mark.parametrize("members", [0, -1, 2.0, True, torch.tensor(True), "4", None])
def test_members_must_be_a_positive_number(members) -> None:
    with pytest.raises(ValueError, match=re.escape(f"members must be a positive integer, got {members!r}")):
        be.convert(mlp(), members=members)


@pytest.mark.parametrize("rank", [0, -1, 1.5])
def test_rank_must_be_a_positive_number(rank) -> None:
    with pytest.raises(ValueError, match=f"rank must be a positive integer, got {rank!r}"):
        be.convert(mlp(), members=2, rank=rank)


@pytest.mark.parametrize("combine", ["median", 3, ["softmax"]])
def test_combine_must_be_known(combine) -> None:
    with pytest.raises(ValueError, match="combine must be"):
        be.convert(mlp(), members=2, combine=combine)


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return self.layer(x) * scale + mask.sum()


def test_batch_dim_counts_from_the_first_axis() -> None:
    for wrong in (-1, True, 1.0, None):
        with pytest.raises(ValueError, match=r"batch_dim is the number of an axis, counted from the first"):
            be.convert(nn.Linear(3, 3), members=2, batch_dim=wrong)
    model = be.convert(nn.Linear(3, 3), members=2, batch_dim=torch.tensor([1]).numpy()[0])
    assert type(model.settings.batch_dim) is int, "NumPy's, which no file holds, is one of ours from here on"


def test_class_dim_is_an_integer_of_any_kind(tmp_path: Path) -> None:
    for wrong in ("1", True, 1.0, None):
        with pytest.raises(ValueError, match=f"class_dim is the number of an axis: 1, -1, ...; got {wrong!r}"):
            be.convert(nn.Linear(3, 3), members=2, class_dim=wrong)
    model = be.convert(nn.Linear(3, 3), members=2, class_dim=torch.tensor([1]).numpy()[0])
    model.save(tmp_path / "model")
    assert be.load(tmp_path / "model", nn.Linear(3, 3)).settings.class_dim == 1


def test_shared_inputs_are_names_of_arguments() -> None:
    with pytest.raises(ValueError, match=r"shared_inputs names \['masks'\].*\['x', 'mask', 'scale'\]$"):
        be.convert(Masked(), members=2, shared_inputs=("masks",))
    x = rows(2)
    for names in ("mask", ["mask"], ("mask",)):
        model = ensemble(Masked(), members=2, shared_inputs=names)
        mask = torch.ones(2, 4)  # as many rows as the batch, but shared
        torch.testing.assert_close(model.members(x, mask)[1], model.extract(1)(x, mask))
        torch.testing.assert_close(model.members(x, mask=mask)[1], model.extract(1)(x, mask))


def test_the_signature_is_the_networks_plus_member() -> None:
    model = be.convert(Masked(), members=2)
    signature = inspect.signature(model.forward)
    assert str(signature).startswith("(x: torch.Tensor, mask: torch.Tensor, *, scale: float = 1.0, member=None)")
    for twin in (copy.deepcopy(model), copy.copy(model)):
        assert inspect.signature(twin.forward) == signature


def test_a_network_that_cannot_be_copied_says_why() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    prune.random_unstructured(net[0], "weight", 0.5)
    with pytest.raises(ValueError, match=r"prune\.remove.*copy=False"):
        be.convert(net, members=2)
    prune.remove(net[0], "weight")
    be.verify(be.convert(net, members=2), rows(3))


def test_the_forward_can_be_wrapped_and_bound_anew() -> None:
    """As Accelerate does for mixed precision, and undoes."""
    model, x = be.convert(nn.Linear(4, 3), members=2).eval(), rows(2)
    expected, function = model(x), model.forward.__func__
    assert list(inspect.signature(function).parameters) == ["self", "input", "member"]
    model.forward = MethodType(function, model)
    torch.testing.assert_close(model(x), expected)
    torch.testing.assert_close(model(x, member=1), model.members(x)[1])


def test_a_network_with_an_argument_called_member_is_refused() -> None:
    class Taken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor, member: int) -> torch.Tensor:
            return self.layer(x)

    net = Taken()
    with pytest.raises(ValueError, match="argument called 'member'"):
        be.convert(net, members=2, copy=False)
    assert type(net.layer) is nn.Linear


@pytest.mark.parametrize("init", ["ones", "sign", "normal", "first"])
@pytest.mark.parametrize("rank", [1, 2])
def test_the_function_is_preserved_by_ones_only(init: str, rank: int) -> None:
    net, x = randomise(convnet()).eval(), images()
    model = be.convert(net, members=M, init=init, rank=rank, generator=torch.Generator().manual_seed(0))
    same = torch.allclose(model.members(x), net(x).expand(M, -1, -1), atol=1e-5)
    assert same is (init == "ones")
    assert be.summary(model).preserved is (init == "ones")


def test_three_dimensional_rows_are_not_mistaken_for_positions() -> None:
    """As many positions as rows, and one position: where others go wrong."""
    model = ensemble(mlp())
    for shape in ((4, 4, 4), (5, 1, 4), (1, 5, 4), (1, 1, 4), (M, M, 4)):
        be.verify(model, torch.randn(shape))


def test_convolutions_and_linear_layers_agree_on_the_order_of_rows() -> None:
    be.verify(ensemble(convnet()), images())
    be.verify(ensemble(convnet(), norm="member"), images())


# ---- load ------------------------------------------------------------------------------------------------------------


def test_a_network_made_on_the_meta_device_starts_by_torchs_convention() -> None:
    with torch.device("meta"):
        model = be.convert(convnet(), members=M, norm="member", init="normal")
    model.to_empty(device="cpu")
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    assert be.verify(model, images()) < 1e-5
    assert not torch.equal(*model.members(images())[:2])


def test_load_takes_the_network_and_not_its_weights(tmp_path) -> None:
    model = ensemble(convnet())
    model.save(tmp_path / "e.safetensors")
    net = convnet()
    before = copy.deepcopy(net.state_dict())
    random = torch.get_rng_state()
    again = be.load(tmp_path / "e.safetensors", net).eval()
    assert torch.equal(again(images()), model(images()))
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize(
    "options",
    [
        {"init": "first", "rank": 2},
        {"init": "normal(0.1)", "norm": "member", "exclude": "0"},
        {"combine": "mean", "class_dim": 1, "fan_out": "5"},
        {"combine": "vote", "include": ["0", "5"]},
        {"combine": None, "include": lambda name, module: isinstance(module, nn.Linear)},
        {"combine": "sigmoid", "shared_inputs": (), "copy": False},
    ],
)
def test_every_setting_survives(tmp_path, options) -> None:
    model = ensemble(convnet(), **options)
    model.add_members(2, like=1).keep_members([4, 0, 1])
    model.save(tmp_path / "e.safetensors")
    again = be.load(tmp_path / "e.safetensors", convnet()).eval()
    assert again.settings == model.settings
    assert again.conversion.converted == model.conversion.converted
    assert len(again) == len(model)
    assert torch.equal(again.members(images()), model.members(images()))
    assert again.state_dict().keys() == model.state_dict().keys()


def test_a_rule_of_your_own_is_given_again(tmp_path) -> None:
    def best(outputs: torch.Tensor) -> torch.Tensor:
        return outputs.amax(0)

    model = ensemble(combine=best)
    model.save(tmp_path / "e.safetensors")
    with pytest.raises(ValueError, match=r"combine of your own.*load\(\.\.\., combine=best\)"):
        be.load(tmp_path / "e.safetensors", mlp())
    again = be.load(tmp_path / "e.safetensors", mlp(), combine=best).eval()
    assert torch.equal(again(rows()), model(rows()))
    assert be.load(tmp_path / "e.safetensors", mlp(), combine=None).settings.combine is None
    ensemble().save(tmp_path / "f.safetensors")
    assert be.load(tmp_path / "f.safetensors", mlp(), combine="mean").settings.combine == "mean"


def test_tied_weights_are_stored_once(tmp_path) -> None:
    from safetensors.torch import load_file

    tokens = torch.arange(12).reshape(4, 3) % 6
    for include in (None, ["head", "middle"], "*"):
        model = ensemble(TiedWeights(), include=include)
        model.save(tmp_path / "e.safetensors")
        assert sum(name.endswith("weight") for name in load_file(tmp_path / "e.safetensors")) == 2
        again = be.load(tmp_path / "e.safetensors", TiedWeights()).eval()
        assert again.net.head.weight is again.net.embed.weight
        assert torch.equal(again(tokens), model(tokens))


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (mlp(5), r"0\.r is \(3, 4\) in the file and \(3, 5\) in the network"),
        (mlp(outputs=2), r"2\.bias is \(3, 3\) in the file and \(3, 2\) in the network"),
        (nn.Sequential(*mlp(), nn.LayerNorm(3)), r"only the network has 3\.bias"),
        (nn.Sequential(nn.Linear(4, 6)), "only the file has a layer '2'"),
        (nn.Linear(4, 6), "only the file has a layer '0'"),
    ],
)
def test_another_network_is_refused(tmp_path, net: nn.Module, message: str) -> None:
    ensemble().save(tmp_path / "e.safetensors")
    with pytest.raises(ValueError, match=message):
        be.load(tmp_path / "e.safetensors", net)
