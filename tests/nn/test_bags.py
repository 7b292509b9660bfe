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
