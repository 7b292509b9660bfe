"""Where outputs hold their rows: by sizes, and by what one row more changes."""

import copy
from typing import Any

import pytest
import torch
from ensembles import mlp
from torch import Tensor, nn

import batchensemble as be
from batchensemble.places import Batch, Finder, Place, unfold

M, N = 3, 4


def unfolded(x: Tensor, axis: int = 0, late: bool = False, kept: int = N) -> Tensor:
    places = Finder().find(x, Batch(axis, M, N, late), lambda: None)
    return unfold(x, places, M, (kept, N))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((M * N, 5), (M, N, 5)),
        ((2, M * N, 5), (M, 2, N, 5)),  # an LSTM's h_n
        ((2 * M * N, 5), (M, 2 * N, 5)),  # beams
        ((), ()),
        ((5, 7), (5, 7)),
        ((0, 3), (0, 3)),
        ((M * N, M * N), (M, N, M * N)),  # the batch axis comes first
    ],
)
def test_sizes_tell(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert unfolded(torch.zeros(shape)).shape == expected


def test_values_are_found() -> None:
    x = torch.arange(2 * M * N).reshape(2, M * N)
    assert torch.equal(unfolded(x)[1], x[:, N : 2 * N])
    assert torch.equal(unfolded(x, axis=1)[2], x[:, 2 * N :])
    assert torch.equal(unfolded(x.T, kept=2)[1], x.T[N : N + 2])


def test_a_trunk_answers_for_every_member() -> None:
    x = torch.arange(2 * N).reshape(N, 2)
    assert torch.equal(unfolded(x, late=True), torch.stack([x] * M))
    assert torch.equal(unfolded(x, late=True, kept=1), torch.stack([x[:1]] * M))
    assert unfolded(x) is x


@pytest.mark.parametrize(
    ("shape", "larger", "place"),
    [
        ((M * N, M * N, 5), (M * N, M * (N + 1), 5), Place(1)),
        ((M * N, M * N, 5), (M * (N + 1), M * N, 5), Place(0)),
        ((M * N, M * N), (M * (N + 1), M * (N + 1)), Place(0)),  # all rows against all rows
        ((2 * M * N, M * N), (2 * M * (N + 1), M * N), Place(0)),
        ((N, M * N), (N, M * (N + 1)), Place(1)),
        ((N, M * N), (N + 1, M * N), Place(0, common=True)),
        ((M * N, M * N), (M * N, M * N), None),
    ],
)
def test_what_grows_with_the_batch_holds_its_rows(shape: Any, larger: Any, place: Place | None) -> None:
    found = Finder().find({"y": torch.zeros(shape)}, Batch(0, M, N, late=True), lambda: {"y": torch.zeros(larger)})
    assert found == (place,)


def test_another_output_for_one_row_more_says_nothing() -> None:
    x = torch.zeros(M * N, M * N)
    for larger in (x, x), x[None], None:
        assert Finder().find(x, Batch(0, M, N), lambda larger=larger: larger) == (Place(0),)


class TimeFirst(nn.Module):
    """Rows first in, steps first out, as a CTC loss wants them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 9)
        self.calls = 0

    def forward(self, x: Tensor, cache: Any = None) -> Tensor:
        self.calls += 1
        return self.layer(x).transpose(0, 1)  # type: ignore[no-any-return]


class Flat(nn.Module):
    """Every step is a row, as in a mixture of experts."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, M * N)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).flatten(0, 1)  # type: ignore[no-any-return]


class State(nn.Module):
    """An LSTM's last state, (layers, rows, size)."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, num_layers=M, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[1][0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("net", "shape"), [(TimeFirst, (N, M * N, 4)), (Flat, (N, 2, 4)), (State, (1, 7, 4))], ids=lambda x: str(x)
)
def test_members_answer_where_other_axes_have_as_many_rows(net: Any, shape: tuple[int, ...]) -> None:
    model = be.convert(net().double(), M, combine="mean").eval()
    x = torch.randn(shape, dtype=torch.float64)
    expected = torch.stack([model.extract(i)(x) for i in range(M)])
    torch.testing.assert_close(model.members(x), expected)
    torch.testing.assert_close(model(x), expected.mean(0))


def test_after_a_late_fan_out_as_well() -> None:
    model = be.convert(nn.Sequential(nn.Linear(4, 4), TimeFirst()).double(), M, combine="mean", fan_out="1").eval()
    x = torch.randn(N, N, 4, dtype=torch.float64)  # as many steps as rows before the cut
    expected = torch.stack([model.extract(i)(x) for i in range(M)])
    torch.testing.assert_close(model.members(x), expected)


def test_one_more_row_is_tried_once_for_every_size() -> None:
    model = be.convert(TimeFirst(), M).eval()
    state = torch.random.get_rng_state()
    for _ in range(3):
        model.members(torch.zeros(N, M * N, 4))
    assert model.net.calls == 4
    model.members(torch.zeros(N, M * N + 1, 4))
    assert model.net.calls == 5
    assert torch.equal(torch.random.get_rng_state(), state)
    fewer = copy.deepcopy(model).keep_members([0, 1])
    assert fewer.members(torch.zeros(N, 2 * N, 4)).shape == (2, 2 * N, N, 9)


def test_nothing_is_tried_where_a_cache_could_notice() -> None:
    model = be.convert(TimeFirst(), M).eval()
    model.members(torch.zeros(N, M * N, 4), cache=object())
    assert model.net.calls == 1


def test_a_trial_moves_no_statistics() -> None:
    net = nn.Sequential(nn.BatchNorm1d(M * N), TimeFirst())
    model, twin = be.convert(net, M).train(), copy.deepcopy(net)
    x = torch.randn(N, M * N, 4)
    assert model.members(x).shape == (M, M * N, N, 9)
    assert model.training
    twin(x.repeat(M, 1, 1))
    torch.testing.assert_close(model.net[0].running_mean, twin[0].running_mean)
    assert model.net[0].num_batches_tracked == 1


def test_a_network_need_not_take_one_row_more() -> None:
    class Pairs(TimeFirst):
        def forward(self, x: Tensor, cache: Any = None) -> Tensor:
            return super().forward(x.unflatten(0, (-1, 2)).flatten(0, 1))

    model = be.convert(Pairs(), M).eval()
    assert model.members(torch.zeros(N, M * N, 4)).shape == (M, N, M * N, 9)


def test_nothing_is_tried_where_sizes_tell() -> None:
    model = be.convert(nn.Sequential(TimeFirst()), M).eval()
    model.members(torch.zeros(N, 5, 4))
    assert model.net[0].calls == 1


def test_a_graph_takes_a_symbolic_batch_for_no_number() -> None:
    model, x = be.convert(TimeFirst(), M).eval(), torch.randn(N, M * N, 4)
    program = be.export_program(model, x)
    probs = program.module()(x)[0]
    torch.testing.assert_close(probs, model.predict(x).probs)
    compiled = torch.compile(model, dynamic=True, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), model(x))


class Codebook(nn.Module):
    """Returns a table without rows beside its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.table = mlp(), nn.Parameter(torch.ones(20, 2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.body(x), self.table


def test_tables_without_rows_do_not_narrow_a_graph() -> None:
    program = be.export_program(be.convert(Codebook(), 4), torch.randn(2, 4))
    assert program.module()(torch.randn(5, 4))[0].shape == (5, 3)
