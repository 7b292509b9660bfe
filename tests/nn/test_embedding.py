"""Embeddings for members: s only, and only when asked for."""

import pytest
import torch
from layer_cases import randomise
from torch import nn

import batchensemble as be

M = 3


class Words(nn.Module):
    def __init__(self, **options) -> None:
        super().__init__()
        self.words, self.places, self.head = nn.Embedding(7, 4, **options), nn.Embedding(5, 4), nn.Linear(4, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head((self.words(tokens) + self.places(torch.arange(tokens.shape[1])[None])).mean(1))


def test_a_member_scales_the_table() -> None:
    layer = randomise(be.nn.Embedding(7, 4, members=M))
    ids = torch.randint(0, 7, (2 * M, 5))
    expected = torch.cat(
        [nn.functional.embedding(part, layer.weight * layer.s[i]) for i, part in enumerate(ids.chunk(M))]
    )
    torch.testing.assert_close(layer(ids), expected)
    assert not hasattr(layer, "r")
    torch.testing.assert_close(layer.plain(None).weight, layer.weight * layer.s.mean(0))


def test_converted_only_when_named() -> None:
    assert be.convert(Words(), members=M).conversion.left["words"].startswith("an embedding")
    assert be.convert(Words(), members=M, include=["words", "head"]).conversion.converted == ("words", "head")
    assert be.convert(Words(), members=M, include=lambda name, _: True).conversion.converted[0] == "words"


def test_members_equal_their_extracts() -> None:
    model = randomise(be.convert(Words(padding_idx=0), members=M, include=["words", "head"])).eval()
    tokens = torch.randint(0, 7, (6, 5))
    be.verify(model, tokens)
    assert model.extract(1).words.padding_idx == 0


@pytest.mark.parametrize("norm_type", [1.0, 2.0])
def test_a_bounded_table_is_scaled_after_it_was_cut(norm_type: float) -> None:
    options = {"max_norm": 0.5, "norm_type": norm_type}
    model = randomise(be.convert(Words(**options), members=M, include=["words", "head"])).double().eval()
    be.verify(model, torch.randint(0, 7, (6, 5)))
    assert model.extract(1).words.max_norm is None
    assert model.net.words.max_norm == 0.5


def test_positions_have_no_rows_and_are_refused() -> None:
    model = be.convert(Words(), members=M, include="*").eval()
    with pytest.raises(ValueError, match="layer 'places'"):
        model(torch.randint(0, 7, (6, 5)))


@pytest.mark.parametrize("rank", [1, 2])
def test_rank_does_not_concern_it(rank: int) -> None:
    model = be.convert(Words(), members=M, include=["words", "head"], rank=rank)
    assert model.net.words.s.shape == (M, 4)


def test_sparse_gradients() -> None:
    layer = be.nn.Embedding(7, 4, members=2, sparse=True)
    layer(torch.randint(0, 7, (4, 5))).sum().backward()
    assert layer.weight.grad.is_sparse
    assert layer.s.grad.shape == (2, 4)
