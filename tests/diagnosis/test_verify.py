"""verify: silent on what works, loud and precise on what the shapes cannot tell."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ensembles import M, N, convnet, ensemble, images, mlp, rows
from torch import Tensor, nn

import batchensemble as be


class TimeFirst(nn.Module):
    """Rows leave axis 0 on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.inside, self.after = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x)
        return self.after(self.inside(x.transpose(0, 1)).transpose(0, 1))


def test_it_returns_the_largest_difference() -> None:
    model = ensemble(convnet())
    assert 0 <= be.verify(model, images()) < 1e-5
    assert be.verify(model.double(), images().double()) < 1e-12


def test_it_names_the_first_layer_that_differs() -> None:
    model = ensemble(TimeFirst())
    with pytest.raises(be.VerificationError, match=r"member 0 differs .* first in layer 'inside'"):
        be.verify(model, torch.randn(4, 4 * M, 4))
    with pytest.raises(ValueError, match="layer 'inside'"):  # the shapes can tell
        be.verify(model, torch.randn(4, 5, 4))
    be.verify(ensemble(TimeFirst(), exclude="inside"), torch.randn(4, 4 * M, 4))


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("init", ["ones", "first"])
def test_members_that_are_alike_hide_nothing(init: str, rank: int) -> None:
    model = be.convert(TimeFirst(), M, init=init, rank=rank)
    before = dict(model.named_parameters())
    values = {name: parameter.clone() for name, parameter in before.items()}
    with pytest.raises(be.VerificationError, match="first in layer 'inside'"):
        be.verify(model, torch.randn(4, 4 * M, 4))
    for name, parameter in model.named_parameters():
        assert parameter is before[name]
        assert torch.equal(parameter, values[name])


def test_members_that_are_alike_on_one_side_hide_nothing() -> None:
    class Square(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return torch.nn.functional.linear(x, self.layer.weight.T @ self.layer.weight)  # signs in s would cancel

    with pytest.raises(be.VerificationError):
        be.verify(be.convert(Square(), M, init="ones", rank=2), rows())


def test_small_answers_hide_nothing() -> None:
    model = ensemble(TimeFirst())
    with torch.no_grad():
        model.net.after.weight.mul_(1e-6)
        model.net.after.bias.zero_()
    with pytest.raises(be.VerificationError, match="first in layer 'inside'"):
        be.verify(model, torch.randn(4, 4 * M, 4))


def test_answers_without_a_number_verify_nothing() -> None:
    with pytest.raises(ValueError, match="no finite number"):
        be.verify(ensemble(), rows() * torch.nan)


def test_zeros_verify_nothing() -> None:
    model = ensemble()
    model.net.register_forward_hook(lambda _module, _inputs, y: y * 0)
    with pytest.raises(ValueError, match="answers with zeros only"):
        be.verify(model, rows())


class Scaled(nn.Module):
    """A residual branch, as it starts in many networks: with nothing, or with next to nothing."""

    def __init__(self, scale: Tensor) -> None:
        super().__init__()
        self.branch, self.scale = TimeFirst(), nn.Parameter(scale)

    def forward(self, x: Tensor) -> Tensor:
        return x[..., :3] + self.branch(x) * self.scale


@pytest.mark.parametrize("scale", [torch.zeros(()), torch.zeros(3), torch.full((3,), 1e-5)], ids=str)
def test_a_scale_of_zero_hides_nothing(scale: Tensor) -> None:
    with pytest.raises(be.VerificationError, match=r"first in layer 'branch\.inside'"):
        be.verify(be.convert(Scaled(scale), M), torch.randn(4, 4 * M, 4))
    be.verify(be.convert(Scaled(scale), M, exclude="branch.inside"), torch.randn(4, 4 * M, 4))
    be.verify(be.convert(Scaled(scale).requires_grad_(False), M), torch.randn(4, 4 * M, 4))  # it will never show


@pytest.mark.parametrize("norm", ["shared", "member"])
def test_weights_that_start_at_zero_hide_nothing(norm: Any) -> None:
    net = nn.Sequential(nn.Linear(4, 4), TimeFirst(), nn.LayerNorm(3))
    nn.init.zeros_(net[2].weight)
    with pytest.raises(be.VerificationError, match=r"first in layer '1\.inside'"):
        be.verify(be.convert(net, M, norm=norm), torch.randn(4, 4 * M, 4))
    nn.init.zeros_(net[1].after.weight)
    nn.init.zeros_(net[1].after.bias)
    with pytest.raises(be.VerificationError, match=r"first in layer '1\.inside'"):
        be.verify(be.convert(net, M, norm=norm), torch.randn(4, 4 * M, 4))


@pytest.mark.parametrize("layers", [2, 6])  # as many as there are rows
def test_states_of_rows_with_ids_are_compared_on_their_own_axis(layers: int) -> None:
    net = nn.GRU(4, 4, layers, batch_first=True)
    assert be.verify(ensemble(net, combine="mean").double(), torch.randn(6, 5, 4).double()) < 1e-12


def test_it_finds_weights_that_are_read_behind_the_layer() -> None:
    class Behind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.Linear(4, 4, bias=False), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(nn.functional.linear(x, self.layer.weight))

    with pytest.raises(be.VerificationError, match="first in layer 'head'"):
        be.verify(ensemble(Behind()), rows())


def test_it_names_the_layer_whose_weight_the_network_reads_itself() -> None:
    class Cosine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 3, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.linear(self.body(x), nn.functional.normalize(self.head.weight))

    with pytest.raises(be.VerificationError, match=r"reads the weights of \['head'\] itself, .* exclude them"):
        be.verify(ensemble(Cosine()), rows())
    assert be.verify(ensemble(Cosine(), exclude="head"), rows()) < 1e-5


def test_it_finds_rows_whose_order_is_lost() -> None:
    class Windows(nn.Module):
        """k inner rows a row, but the wrong way round: blocks fit by size, ids do not."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(torch.cat(x.chunk(2, 1))).unflatten(0, (2, -1)).mean(0)

    with pytest.raises(be.VerificationError):
        be.verify(ensemble(Windows()), rows(6))


def test_it_finds_rows_that_change_places_among_one_members() -> None:
    class Swaps(nn.Module):
        """Neighbours change places and change back: right for blocks of an even size, wrong for ids."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            swapped = torch.arange(len(x)).reshape(-1, 2).flip(1).flatten()
            return self.layer(x[swapped])[swapped]

    with pytest.raises(be.VerificationError, match="rows with member ids of their own"):
        be.verify(ensemble(Swaps()), rows(6))


class Noisy(nn.Module):
    """A variational autoencoder that samples whenever no noise is given."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(4, 2), nn.Linear(2, 4)

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        z = self.encode(x)
        return self.decode(z + (torch.randn_like(z) if noise is None else noise))


def test_networks_that_draw_random_numbers_are_told_from_wrong_ones() -> None:
    model = ensemble(Noisy(), combine="mean")
    with pytest.raises(be.VerificationError, match=r"random numbers in evaluation.*noise as an input"):
        be.verify(model, rows())
    be.verify(model, rows(), torch.randn(N, 2))


class Similar(nn.Module):
    """Every row compared with every other."""

    def __init__(self, entries: bool) -> None:
        super().__init__()
        self.layer, self.entries = nn.Linear(4, 3), entries

    def forward(self, x: Tensor) -> Any:
        h = self.layer(x)
        return {"logits": h, "boxes": [row[row > 0] for row in h]} if self.entries else h @ h.T


def test_shapes_that_differ_are_told() -> None:
    with pytest.raises(be.VerificationError, match=rf"in shape, \({N}, {M * N}\) instead of \({N}, {N}\).*member=i"):
        be.verify(ensemble(Similar(entries=False)), rows())
    with pytest.raises(be.VerificationError, match=f"{N + 1} tensors for one member's rows and {M * N + 1} for all"):
        be.verify(ensemble(Similar(entries=True)), rows())


def test_a_batch_axis_that_is_squeezed_away_is_told() -> None:
    class Squeezed(nn.Linear):
        def __init__(self) -> None:
            super().__init__(4, 1)
            self.register_forward_hook(lambda _module, _inputs, output: output.squeeze())

    model = ensemble(Squeezed(), combine="sigmoid")
    be.verify(model, rows())
    with pytest.raises(be.VerificationError, match=rf"in shape, \({M}, 1\) instead of \(\)"):
        be.verify(model, rows(1))


class Packed(nn.Module):
    """A packed LSTM, before rows meet."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, (state, _) = self.lstm(packed)
        return self.head(state[-1] - state[-1].mean(0))


def test_packed_rows_are_not_taken_for_a_difference() -> None:
    with pytest.raises(be.VerificationError, match="first in layer 'head'"):
        be.verify(ensemble(Packed()), torch.randn(4, 5, 4), torch.tensor([5, 2, 4, 1]))


class Hidden(nn.Module):
    """A layer called by a way that `how` makes."""

    def __init__(self, how: Callable[[nn.Module], Any]) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 3)
        self.call = how(self.layer)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.call(x))


def test_it_warns_of_layers_that_no_row_reached() -> None:
    with pytest.warns(UserWarning, match=r"no row reached the converted layers \['layer'\]"):
        be.verify(ensemble(Hidden(lambda layer: lambda x: layer(x))), rows())


def test_a_layer_that_is_reached_without_its_call_is_not_warned_of() -> None:
    be.verify(ensemble(Hidden(lambda layer: layer.forward)), rows())


class Heads(nn.Module):
    """Heads of every kind that only training asks."""

    def __init__(self) -> None:
        super().__init__()
        self.head = mlp()
        self.attention, self.lstm, self.norm = nn.MultiheadAttention(4, 2), nn.LSTM(4, 4), nn.GroupNorm(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            x = self.norm(self.lstm(self.attention(x, x, x)[0])[0])
        return self.head(x)


@pytest.mark.parametrize("compiled", [False, True])
def test_layers_for_training_only_are_named_whole(compiled: bool) -> None:
    model = ensemble(Heads(), norm="member")
    if compiled:
        model.compile(backend="eager")
    with pytest.warns(UserWarning, match=r"layers \['attention', 'lstm', 'norm'\]. The network may do without"):
        be.verify(model, rows())


def test_it_does_not_compare_the_networks_own_loss() -> None:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = mlp()

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.layer(x)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    be.verify(ensemble(WithLoss()), rows(), torch.arange(7) % 3)


def test_modes_gradients_and_weights_are_as_before() -> None:
    model = ensemble(convnet()).train()
    model.net[1].eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    be.verify(model, images())
    assert model.training
    assert not model.net[1].training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_one_row_and_one_member() -> None:
    be.verify(ensemble(), rows(1))
    be.verify(ensemble(members=1), rows())


def test_no_rows_verify_nothing() -> None:
    with pytest.raises(ValueError, match="no rows to verify"):
        be.verify(ensemble(), rows()[:0])


@pytest.mark.parametrize("before", [True, False])
def test_zeros_of_torchs_fast_path_at_padded_positions_are_no_difference(before: bool) -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)
    model = ensemble(nn.TransformerEncoder(layer, 2), combine="mean")
    padding = torch.arange(5) >= torch.tensor([4, 5, 3, 2])[:, None]
    torch.backends.mha.set_fastpath_enabled(before)
    try:
        be.verify(model, torch.randn(4, 5, 4), src_key_padding_mask=padding)
        assert torch.backends.mha.get_fastpath_enabled() is before
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_the_model_answers_as_ever_while_it_is_verified() -> None:
    """Members that are alike are moved apart, but in a copy: others may be asking the model itself."""
    seen: list[bool] = []

    class Asks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(torch.equal(model.net[0].r, before) and model.net[1].training)
            return x

    model = be.convert(nn.Sequential(nn.Linear(4, 3), Asks()), M, init="ones").train()
    before = model.net[0].r.detach().clone()
    be.verify(model, rows().float())
    assert seen
    assert all(seen)


def test_what_cannot_be_copied_is_no_obstacle() -> None:
    net = nn.Sequential(torch.nn.utils.spectral_norm(nn.Linear(4, 5)), nn.Linear(5, 3))
    model = be.convert(net, M, copy=False).train()
    model.lock = threading.Lock()
    model(torch.randn(N, 4)).sum().backward()  # the normalised weight now has a history
    be.verify(model, torch.randn(N, 4))
    assert model.training
