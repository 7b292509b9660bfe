"""Bags of embeddings: ids in rows, and flat ids with offsets, which are copied with the batch while the ids are not."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import batchensemble as be

M = 3
IDS = torch.tensor([1, 5, 2, 2, 6, 3, 0])
OFFSETS = torch.tensor([0, 2, 2, 6])
ONCE = ("ids", "weights")


class Texts(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(7, 4, **options), nn.Linear(4, 2)

    def forward(self, ids: Tensor, offsets: Tensor | None = None, weights: Tensor | None = None) -> Tensor:
        return self.head(self.words(ids, offsets, weights))


class Padded(Texts):
    """Flat ids and offsets are made inside, of rows that were padded with zeros."""

    def forward(self, padded: Tensor) -> Tensor:
        lengths = (padded > 0).sum(1)
        return super().forward(padded[padded > 0], lengths.cumsum(0) - lengths)


def texts(kind: type[Texts] = Texts, shared_inputs: Any = (), fan_out: str | None = None, **options: Any) -> Any:
    torch.manual_seed(0)
    choices = {"include": options.pop("include", None), "shared_inputs": shared_inputs, "fan_out": fan_out}
    return be.convert(kind(**options).double(), members=M, combine="mean", **choices).eval()


def each(model: Any, *inputs: Tensor) -> Tensor:
    return torch.stack([model.extract(i)(*inputs) for i in range(M)])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("fan_out", [None, "head"])
@pytest.mark.parametrize("count", [7, 12, 4, 3, 1])  # 12: as many ids as bags of all members
@pytest.mark.parametrize("offsets", [OFFSETS, OFFSETS[:1]], ids=["four bags", "one bag"])
def test_flat_ids_are_named(mode: str, fan_out: str | None, count: int, offsets: Tensor) -> None:
    ids, offsets = torch.cat([IDS, IDS])[:count], offsets.clamp(max=count)
    model = texts(mode=mode, shared_inputs=ONCE, fan_out=fan_out)
    torch.testing.assert_close(model.members(ids, offsets), each(model, ids, offsets))
    torch.testing.assert_close(model(ids, offsets, member=1), model.extract(1)(ids, offsets))


def test_dealt_bags() -> None:
    model, offsets = texts(shared_inputs=ONCE), torch.tensor([0, 2, 2, 3, 4, 6])
    expected = torch.cat([part.chunk(M)[i] for i, part in enumerate(each(model, IDS, offsets))])
    torch.testing.assert_close(model.train()(IDS, offsets), expected)


def test_weights_of_flat_ids() -> None:
    model, weights = texts(mode="sum", shared_inputs=ONCE), torch.linspace(-1, 1, len(IDS), dtype=torch.float64)
    torch.testing.assert_close(model.members(IDS, OFFSETS, weights), each(model, IDS, OFFSETS, weights))


@pytest.mark.parametrize("count", [4, 1])
@pytest.mark.parametrize("mode", ["sum", "max"])
def test_as_many_ids_as_bags_are_not_taken_for_rows(mode: str, count: int) -> None:
    model = texts(mode=mode)
    with pytest.raises(ValueError, match=r"layer 'words' \(EmbeddingBag\) got as many flat ids .* shared_inputs"):
        model(IDS[:count], OFFSETS[:count])


def test_flat_ids_cannot_be_cut() -> None:
    with pytest.raises(ValueError, match=r"begin at 2: .* without batch_size"):
        texts(shared_inputs=ONCE, mode="max").predict(IDS, OFFSETS, batch_size=2)


@pytest.mark.parametrize("rows", [1, 4])
def test_ids_in_rows_and_bags_made_inside(rows: int) -> None:
    ids = torch.tensor([[1, 2, 0], [4, 0, 0], [3, 6, 5], [2, 2, 0]])[:rows]
    be.verify(texts(padding_idx=0), ids)
    be.verify(texts(Padded), ids)


def test_bags_have_no_members_and_come_back_as_torchs_own() -> None:
    model = texts(include="*")
    assert model.conversion.left["words"] == "there is no rank-one form of EmbeddingBag"
    assert type(model.extract(0).words) is nn.EmbeddingBag


class Lengths(Texts):
    """Offsets are made inside, of a length for every row; they go on ascending in the copies of the batch."""

    def forward(self, ids: Tensor, lengths: Tensor, weights: Tensor | None = None) -> Tensor:
        ends = lengths.cumsum(0)
        last = self.words.include_last_offset
        return super().forward(ids, torch.cat([ends.new_zeros(1), ends]) if last else ends - lengths, weights)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", ["sum", "max"])
@pytest.mark.parametrize("lengths", [[2, 0, 4, 1], [7], [0], [0, 7], [7, 0]], ids=str)
def test_lengths_are_rows(mode: str, last: bool, lengths: list[int]) -> None:
    model, counts = texts(Lengths, ONCE, mode=mode, include_last_offset=last), torch.tensor(lengths)
    ids = IDS[: sum(lengths)]
    torch.testing.assert_close(model.members(ids, counts), each(model, ids, counts))
    torch.testing.assert_close(model(ids, counts, member=1), model.extract(1)(ids, counts))


def test_lengths_and_weights() -> None:
    model, weights = texts(Lengths, ONCE, mode="sum"), torch.linspace(-1, 1, len(IDS), dtype=torch.float64)
    lengths = torch.tensor([2, 0, 4, 1])
    torch.testing.assert_close(model.members(IDS, lengths, weights), each(model, IDS, lengths, weights))


@pytest.mark.parametrize("train", [True, False])
def test_an_end_after_the_last_bag_is_no_row(train: bool) -> None:
    model = texts(shared_inputs=ONCE, include_last_offset=True).train(train)
    offsets = torch.tensor([0, 2, 2, 6, 7])
    with pytest.raises(ValueError, match="should hold the batch's") as failed:
        model(IDS, offsets)
    assert "layer 'words' (EmbeddingBag) takes offsets that end" in failed.value.__notes__[0]
    assert model(IDS, offsets, member=0).shape == (4, 2)


class Bags(nn.EmbeddingBag):
    pass


class Own(nn.EmbeddingBag):
    def forward(self, ids: Tensor, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
        if (offsets.diff() < 0).any():  # torch reads past the ids then, and refuses that only in part
            raise RuntimeError("expected offsets[0] <= offsets[1] <= ...")
        return super().forward(ids, offsets, weights)


class Ours(Texts):
    def __init__(self, kind: type[nn.EmbeddingBag]) -> None:
        super().__init__()
        self.words = kind(7, 4)


def test_a_subclass_is_shared_like_torchs_own() -> None:
    model = texts(lambda: Ours(Bags), ONCE)
    torch.testing.assert_close(model.members(IDS, OFFSETS), each(model, IDS, OFFSETS))
    assert type(model.extract(0).words) is Bags


def test_bags_that_compute_otherwise_are_told_of_the_fan_out() -> None:
    with pytest.raises(RuntimeError, match="expected offsets") as failed:
        texts(lambda: Ours(Own), ONCE).members(IDS, OFFSETS)
    assert "Name the module behind the bags as fan_out" in failed.value.__notes__[0]
    model = texts(lambda: Ours(Own), ONCE, fan_out="head")
    torch.testing.assert_close(model.members(IDS, OFFSETS), each(model, IDS, OFFSETS))
