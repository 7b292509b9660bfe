"""How fast weights start: the rules, their numbers, and where randomness comes from."""

import pytest
import torch
from torch import nn

import batchensemble as be
from batchensemble.nn.init import draw_fast_, parse_init


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(init: str, side: str = "r", rank: int = 1, members: int = 50, features: int = 200) -> torch.Tensor:
    shape = (members, features) if rank == 1 else (members, rank, features)
    return draw_fast_(torch.empty(shape), init, side, seeded())


@pytest.mark.parametrize(("init", "share"), [("sign", 0.5), ("sign(0.9)", 0.9), ("sign(0)", 0.0), ("sign(1)", 1.0)])
def test_signs(init: str, share: float) -> None:
    signs = drawn(init)
    assert set(signs.unique().tolist()) <= {-1.0, 1.0}
    assert (signs == 1).float().mean().item() == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(
    ("init", "spread"), [("normal", 0.5), ("normal(0.1)", 0.1), ("first", 0.5), ("first(.2)", 0.2)]
)
def test_around_one(init: str, spread: float) -> None:
    values = drawn(init)
    assert values.mean().item() == pytest.approx(1.0, abs=0.02)
    assert values.std().item() == pytest.approx(spread, abs=0.02)


@pytest.mark.parametrize(("init", "side"), [("ones", "r"), ("ones", "s"), ("first", "s")])
def test_ones(init: str, side: str) -> None:
    assert bool((drawn(init, side) == 1).all())


def test_further_components_start_without_effect_and_can_learn() -> None:
    r, s = drawn("ones", "r", rank=3), drawn("ones", "s", rank=3)
    assert r.shape == s.shape == (50, 3, 200)
    assert bool((r[:, 0] == 1).all())
    assert bool((s[:, 0] == 1).all())
    assert not s[:, 1:].any()
    assert bool((r[:, 1:].abs() == 1).all())
    assert bool((r[:, 1:].mean((0, 2)).abs() < 0.05).all())  # random signs: 50 members of 200 features
    assert not torch.equal(r[0, 1:], r[1, 1:])


@pytest.mark.parametrize(
    "init", ["signs", "sign(1.5)", "sign(-1)", "normal(1.2.3)", "sign(.)", "ones(1)", "sign()", "", None, 1]
)
def test_anything_else_is_refused(init) -> None:
    with pytest.raises(ValueError, match=r"^init"):
        be.convert(nn.Linear(2, 2), members=2, init=init)


@pytest.mark.parametrize("init", ["sign", "ones"])
def test_a_seed_is_no_generator(init: str) -> None:
    net = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"expected a torch\.Generator, .*, got int$"):
        be.convert(net, members=2, init=init, generator=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected a torch\.Generator, .*, got int$"):
        be.nn.Linear(2, 2, members=2, init=init, generator=3)


def test_numbers() -> None:
    assert parse_init("first(3)") == ("first", 3.0)
    assert parse_init("ones") == ("ones", 0.0)


@pytest.mark.parametrize("init", ["sign", "normal", "first"])
def test_the_generator_decides_alone(init: str) -> None:
    torch.manual_seed(1)
    one = be.convert(nn.LSTM(3, 4), members=3, init=init, rank=2, generator=seeded(7)).state_dict()
    torch.manual_seed(2)
    state = torch.get_rng_state()
    net = nn.LSTM(3, 4)
    before = torch.get_rng_state()
    two = be.convert(net, members=3, init=init, rank=2, generator=seeded(7)).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(state, before)
    fast = [name for name in one if name.endswith((".r", ".s"))]
    assert fast
    assert all(torch.equal(one[name], two[name]) for name in fast)


def test_type_and_device_are_the_weights() -> None:
    layer = be.convert(nn.Linear(2, 2).bfloat16(), members=2, generator=seeded()).net
    assert layer.r.dtype == layer.s.dtype == layer.bias.dtype == torch.bfloat16


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.attention, self.head = nn.Embedding(5, 4), nn.MultiheadAttention(4, 2), nn.Linear(4, 2)


def test_first_is_the_first_layer_that_reads_features() -> None:
    model = be.convert(Attends(), members=3, init="first", include="*")
    random = {n for n, p in model.named_parameters() if n[-2:] in (".r", ".s") and not bool((p == 1).all())}
    assert random == {f"net.attention.{part}.r" for part in ("q_proj", "k_proj", "v_proj")}
    recurrent = be.convert(nn.LSTM(3, 4, 2, bidirectional=True), members=3, init="first")
    random = {n for n, p in recurrent.named_parameters() if n[-2:] in (".r", ".s") and not bool((p == 1).all())}
    assert random == {"net.ih_l0.r", "net.ih_l0_reverse.r"}
