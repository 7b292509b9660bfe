"""verify compares numbers of every kind, and tells what is none."""

import pytest
import torch
from ensembles import M, N, ensemble, mlp, rows
from torch import Tensor, nn

import batchensemble as be


class Crowded(nn.Module):
    """Two answers, one of which depends on how many rows there are."""

    def __init__(self, fault: float, which: str) -> None:
        super().__init__()
        self.layer, self.fault, self.which = nn.Linear(4, 3), fault, which

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        out = {"logits": self.layer(x), "other": 2 * self.layer(x)}
        out[self.which] = out[self.which] + (self.fault if len(x) > N else 0)
        return out


@pytest.mark.parametrize("which", ["logits", "other"])
@pytest.mark.parametrize("fault", [torch.nan, torch.inf, -torch.inf, 1e-6])
def test_no_answer_may_be_wrong_or_no_number_at_all(fault: float, which: str) -> None:
    model, x = ensemble(Crowded(fault, which)).double(), rows().double()
    with pytest.raises(be.VerificationError, match="member 0 differs"):
        be.verify(model, x)
    assert not any(module._forward_hooks for module in model.modules())  # those that looked for the layer
    assert be.verify(ensemble(Crowded(0.0, which)).double(), x) < 1e-12


def test_what_is_no_number_in_the_plain_network_may_be_none_in_members() -> None:
    class Masked(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).masked_fill(x[:, :3] > 0, -torch.inf)

    assert be.verify(ensemble(Masked(nn.Linear(4, 3))), rows()) < 1e-5


@pytest.mark.parametrize("fault", [-torch.inf, torch.nan])
def test_one_infinity_is_not_another(fault: float) -> None:
    class Masked(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).masked_fill(x[:, :3] > 0, fault if len(x) > N else torch.inf)

    with pytest.raises(be.VerificationError, match="member 0 differs"):
        be.verify(ensemble(Masked(nn.Linear(4, 3))), rows())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_every_precision(dtype: torch.dtype) -> None:
    be.verify(ensemble(mlp()).to(dtype), rows().to(dtype))


def test_answers_are_only_as_precise_as_what_computes_them() -> None:
    net = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))
    net.register_forward_hook(lambda _module, _inputs, y: y.float())  # as many language models do
    be.verify(be.convert(net.bfloat16(), members=M), rows(16, 32).bfloat16())


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_answers_are_compared_as_closely_as_their_parts(dtype: torch.dtype) -> None:
    net = nn.Sequential(nn.Linear(4, 6, dtype=dtype), nn.Linear(6, 3, dtype=dtype))
    model, x = ensemble(net, combine="mean"), torch.complex(rows(), rows().flip(0)).to(dtype)
    assert 0 < be.verify(model, x) < (1e-5 if dtype == torch.complex64 else 1e-12)
    model.net.register_forward_hook(lambda _module, _inputs, y: y + 1j * (len(y) > N) * y.abs().max())
    with pytest.raises(be.VerificationError):
        be.verify(model, x)


def test_integers_are_compared_too() -> None:
    class Labels(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y = self.layer(x)
            return y, y.argmax(-1)

    be.verify(ensemble(Labels()), rows())


@pytest.mark.parametrize(("norm", "beside"), [("member", "with others"), ("shared", "with those of other members")])
def test_batch_norms_without_statistics_are_named(norm: str, beside: str) -> None:
    """A row's answer depends on the others: nothing was wrong with the layers of the members."""
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 3))
    words = rf"batch norms \['1'\] have no running statistics .*track_running_stats.* their rows come {beside}\."
    with pytest.raises(be.VerificationError, match=words):
        be.verify(ensemble(net, norm=norm), rows())
