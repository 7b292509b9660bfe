"""Where outputs hold their rows: by their sizes, and by what was seen at other sizes."""

import copy
from typing import Any

import pytest
import torch
from ensembles import mlp
from torch import Tensor, nn

import batchensemble as be
from batchensemble.ensemble import places
from batchensemble.ensemble.places import Batch, Finder, unfold

M, N = 3, 4


def unfolded(x: Tensor, axis: int = 0, late: bool = False, kept: int = N) -> Tensor:
    found = Finder().find(x, x, Batch(axis, M, N, late), tuple)
    return unfold(x, found, M, N // kept)  # type: ignore[no-any-return]


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


@pytest.mark.parametrize("classes", [5, M * N, 2 * M * N])
def test_classes_of_time_first_rows_are_no_rows(classes: int) -> None:
    assert unfolded(torch.zeros(M * N, classes), axis=1).shape == (M, N, classes)
    assert unfolded(torch.zeros(M * N, M * N, classes), axis=1).shape == (M, M * N, N, classes)


class Series(nn.Module):
    """A number for every step, time-first."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(2, 4), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0]).squeeze(-1)  # type: ignore[no-any-return]


@pytest.mark.parametrize("fan_out", [None, "head"])
@pytest.mark.parametrize("steps", [N, M * N, 2 * M * N])
def test_steps_of_time_first_rows_are_no_rows_either(steps: int, fan_out: str | None) -> None:
    model = be.convert(Series(), M, combine="mean", batch_dim=1, fan_out=fan_out).eval()
    x = torch.randn(steps, N, 2)
    torch.testing.assert_close(model.members(x)[1], model.extract(1)(x))


def test_classes_after_a_late_fan_out_are_no_rows() -> None:
    x = torch.arange(M * N * N).reshape(M * N, N)  # as many classes as rows
    assert torch.equal(unfolded(x, axis=1, late=True)[1], x[N : 2 * N])
    assert torch.equal(unfolded(x[:N], axis=1, late=True, kept=1), torch.stack([x[:1]] * M))


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


def own(model: be.Ensemble, x: Tensor) -> Tensor:
    return torch.stack([model.extract(i)(x) for i in range(len(model))])


@pytest.mark.parametrize(
    ("net", "seen", "shape"),
    [
        (TimeFirst, (N, M * N + 1, 4), (N, M * N, 4)),
        (Flat, (N + 1, 2, 4), (N, 2, 4)),
        (State, (2, 7, 4), (1, 7, 4)),
    ],
)
def test_what_was_seen_at_another_size_tells_where_rows_are(net: Any, seen: Any, shape: Any) -> None:
    model = be.convert(nn.Sequential(net()).double(), M, combine="mean").eval()
    x = torch.randn(shape, dtype=torch.float64)
    if net is not Flat:  # several rows on the batch axis are likelier than rows elsewhere
        assert model.members(x).shape != own(model, x).shape or not torch.equal(model.members(x), own(model, x))
    be.verify(model, torch.randn(seen, dtype=torch.float64))  # which learns it for the model
    torch.testing.assert_close(model.members(x), own(model, x))
    torch.testing.assert_close(model(x), own(model, x).mean(0))


def test_after_a_late_fan_out_as_well() -> None:
    model = be.convert(nn.Sequential(nn.Linear(4, 4), TimeFirst()).double(), M, combine="mean", fan_out="1").eval()
    model.members(torch.randn(N, N + 1, 4, dtype=torch.float64))
    x = torch.randn(N, N, 4, dtype=torch.float64)  # as many steps as rows before the cut
    torch.testing.assert_close(model.members(x), own(model, x))


def test_calls_that_differ_by_a_constant_or_in_mode_are_remembered_apart() -> None:
    class Either(TimeFirst):
        def forward(self, x: Tensor, time_first: bool = False) -> Tensor:
            y = super().forward(x)
            return y if time_first and not self.training else y.transpose(0, 1)

    model, x = be.convert(Either(), M).eval(), torch.randn(N, M * N, 4)
    longer = torch.randn(N, M * N + 1, 4)
    model.members(longer, time_first=True)
    assert model.members(x, time_first=True).shape == (M, M * N, N, 9)
    assert model.members(x).shape == (M, N, M * N, 9)
    assert model.train().members(x, time_first=True).shape == (M, N, M * N, 9)


def test_a_call_without_an_answer_is_not_remembered() -> None:
    class Loses(TimeFirst):
        def forward(self, x: Tensor, cache: Any = None) -> Tensor:
            y = super().forward(x)
            return y[:, 1:] if x.shape[1] == 2 else y

    model = be.convert(Loses(), M).eval()
    for _ in range(2):
        with pytest.raises(ValueError, match="does not hold the 12 rows"):
            model.members(torch.randn(N, 2, 4))
        assert model.members(torch.randn(N, 3, 4)).shape == (M, 3, N, 9)


def test_members_are_counted() -> None:
    model = be.convert(TimeFirst(), M).eval()
    model.members(torch.zeros(N, 5, 4))
    assert copy.deepcopy(model).keep_members([0, 1]).members(torch.zeros(N, 2 * N, 4)).shape == (2, 2 * N, N, 9)


def test_memory_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST", 3)
    model = be.convert(TimeFirst(), M).eval()
    for number in range(9):
        assert model.members(torch.zeros(N, 5, 4), cache=number).shape == (M, 5, N, 9)
    assert len(model._finder._seen) <= 4


@pytest.mark.parametrize("dynamic", [None, True])
def test_graphs_that_begin_anew_inside_a_network(dynamic: bool | None) -> None:
    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            y = self.body(x)
            torch._dynamo.graph_break()
            return self.head(y)  # type: ignore[no-any-return]

    model = be.convert(Breaks(), M).eval()
    compiled = torch.compile(model, backend="eager", dynamic=dynamic)
    with torch.no_grad():
        for rows in (8, 5, 3, 11):
            x = torch.randn(rows, 4)
            torch.testing.assert_close(compiled(x), model(x))


def test_a_state_from_before_a_late_fan_out_has_members_too() -> None:
    class Trunk(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y, (h, _) = self.lstm(x)
            return self.head(y[:, -1]), h

    model = be.convert(Trunk(), M, fan_out="head").eval()
    for rows in (1, N):
        logits, h = model.members(torch.randn(rows, 6, 4))
        assert logits.shape == (M, rows, 3)
        assert h.shape == (M, 1, rows, 5)


def test_a_graph_takes_a_symbolic_batch_for_no_number() -> None:
    model, x = be.convert(TimeFirst(), M).eval(), torch.randn(N, M * N, 4)
    model.members(torch.randn(N, 5, 4))
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
