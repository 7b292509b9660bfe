"""Networks that do with their rows what no split or repeated batch survives: one member at a time, they may."""

from typing import Any

import pytest
import torch
from ensembles import M, N, ensemble, rows
from torch import Tensor, nn


class Meeting(nn.Module):
    """Takes a list of sets, gathers rows for an expert, and pools each set: rows come and go."""

    def __init__(self, norm: bool) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5) if norm else nn.Identity())
        self.lstm, self.attention = nn.LSTM(5, 5), nn.MultiheadAttention(5, 1)
        self.expert, self.head = nn.Conv1d(5, 5, 1), nn.Linear(5, 3)

    def forward(self, sets: list[Tensor]) -> list[dict[str, Tensor]]:
        h = self.enter(torch.cat(sets))
        h = h.index_put((h[:, 0] > 0,), self.expert(h[h[:, 0] > 0].unsqueeze(-1)).squeeze(-1))
        parts = [self.lstm(part.unsqueeze(1))[0] for part in h.split([len(each) for each in sets])]
        pooled = torch.cat([self.attention(part, part, part)[0].mean(0) for part in parts])
        return [{"scores": row} for row in self.head(pooled - pooled.mean(0))]


@pytest.mark.parametrize("norm", ["shared", "member"])
@pytest.mark.parametrize("training", [True, False])
def test_one_member_may_do_anything_with_its_rows(training: bool, norm: str) -> None:
    model = ensemble(Meeting(training), norm=norm).train(training)
    sets = [rows(5), rows(2), rows(4)]
    for i in range(M):
        plain = model.extract(i).train(training)
        found, expected = model(sets, member=i), plain(sets)
        torch.testing.assert_close(
            torch.stack([row["scores"] for row in found]), torch.stack([row["scores"] for row in expected])
        )
    with pytest.raises(
        ValueError, match=r"name it in shared_inputs.* or ask one member at a time: model\(x, member=i\)"
    ):
        model.members(sets)


class Pooled(nn.Module):
    """One answer for the whole batch, a graph say."""

    def __init__(self) -> None:
        super().__init__()
        self.node, self.norm, self.head = nn.Linear(4, 5), nn.LayerNorm(5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.node(x).mean(0)))


@pytest.mark.parametrize("options", [{}, {"norm": "member", "rank": 2}])
def test_one_member_may_join_its_rows(options: dict[str, Any]) -> None:
    model = ensemble(Pooled(), **options)
    torch.testing.assert_close(model(rows(), member=1), model.extract(1)(rows()))


class Fixed(nn.Module):
    """Made for N rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).view(N, 3)


def test_the_error_of_a_network_says_that_its_batch_was_repeated() -> None:
    model = ensemble(Fixed())
    with pytest.raises(RuntimeError) as caught:
        model.members(rows())
    assert f"the network got {M} x {N} rows" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError) as caught:  # as in the plain network
        model(rows(N + 1), member=1)
    assert not hasattr(caught.value, "__notes__")


def test_the_note_tells_rows_that_were_repeated_from_inputs_that_do_not_fit() -> None:
    model, wrong = ensemble(nn.Linear(4, 3)), torch.randn(N, 5)  # torch names the rows in that error, too
    with pytest.raises(RuntimeError) as caught:
        model.members(wrong)
    assert "If model(x, member=0) fails as well, the inputs do not fit the network" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError):
        model(wrong, member=0)


def test_errors_about_anything_else_carry_no_note() -> None:
    model = ensemble(Fixed())
    model.net.register_forward_pre_hook(lambda *_: torch.zeros(2).item())
    with pytest.raises(RuntimeError) as caught:
        model.members(rows())
    assert not hasattr(caught.value, "__notes__")


class Padded(nn.Module):
    """Takes lengths, which may be a list."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(4, 3, batch_first=True)

    def forward(self, x: Tensor, lengths: list[int]) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        y: Tensor = self.layer(packed)[1][-1]
        return y


def test_lists_beside_repeated_rows_are_named() -> None:
    with pytest.raises(RuntimeError, match="batch_size") as caught:
        ensemble(Padded()).members(torch.randn(2, 5, 4), [5, 2])
    assert "lists of 2 numbers stay as they are: give tensors instead" in caught.value.__notes__[0]


def test_an_answer_without_rows_is_described() -> None:
    model = ensemble(nn.Linear(4, 3))
    model.net.register_forward_hook(lambda *given: given[2].mean(0, keepdim=True))
    with pytest.raises(ValueError, match=r"its shape is \(1, 3\).* name it with output=.* model\(x, member=i\)"):
        model.members(rows())
