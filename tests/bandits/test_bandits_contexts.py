"""Contexts: numbers for networks that take numbers, integers for those that take nothing else."""

from pathlib import Path

import pytest
import torch
from test_bandits_sampler import equal, network, state
from torch import nn

from batchensemble.bandits import ThompsonSampler, Training

WORDS = torch.tensor([[1, 2, 3], [4, 0, 1], [2, 2, 9], [7, 8, 5]])


class Looks(nn.Module):
    """A table that is indexed, which raises no RuntimeError for numbers that are no integers."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Parameter(torch.randn(10, 4)), nn.Linear(12, 2)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.table[words].flatten(1))


class Insists(Looks):
    """Checks its inputs by an assertion."""

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        assert words.dtype == torch.int64
        return super().forward(words)


def embedding() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(12, 2))


def sampler(net: nn.Module, **options: object) -> ThompsonSampler:
    return ThompsonSampler(net, members=3, training=Training(every=4, steps=2), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("net", [embedding, Looks, Insists])
@pytest.mark.parametrize(
    "given", [WORDS, WORDS.tolist(), WORDS.int(), WORDS.numpy()], ids=lambda given: type(given).__name__
)
def test_integers_stay_integers_for_networks_that_take_nothing_else(net: type[nn.Module], given: object) -> None:
    one = sampler(net())
    made = one.act(given)
    one.update(made.ids, torch.ones(4))
    assert one.trainings == 1
    assert one._ledger.rows(torch.arange(4))[0].equal(WORDS)
    assert one.predict(WORDS).mean.shape == (4, 2)


def test_integers_are_kept_by_files(tmp_path: Path) -> None:
    first, kept = sampler(embedding()), sampler(embedding(), folder=tmp_path / "kept")
    for one in (first, kept):
        one.act(WORDS)
        one.update([0, 1], [1.0, 0.0])
    kept.close()
    first.save(tmp_path / "saved")
    again = sampler(embedding(), folder=tmp_path / "kept")
    read = ThompsonSampler.load(tmp_path / "saved", embedding(), training=Training(every=4, steps=2))
    for one in (first, again, read):
        one.act(WORDS)
        one.update([2, 3, 5], [1.0, 0.0, 1.0])
    assert equal(state(again), state(first))
    assert equal(state(read), state(first))


def test_integers_become_numbers_for_networks_that_take_numbers() -> None:
    one, other = sampler(network()), sampler(network())
    made, same = one.act(WORDS), other.act(WORDS.float())
    assert torch.equal(made.arms, same.arms)
    one.act([[0.5, 1, 2]])
    one.update(range(5), torch.ones(5))
    assert one._ledger.rows(torch.tensor([4]))[0].tolist() == [[0.5, 1, 2]]


def test_what_a_network_says_to_contexts_that_it_does_not_take() -> None:
    with pytest.raises(ValueError, match=r"shape \(1, 3\) and type torch\.float32: .*[Ii]ndices"):
        sampler(embedding()).act([[0.5, 1.0, 2.0]])
    one = sampler(embedding())
    with pytest.raises(
        ValueError, match=r"shape \(1, 3\), neither as torch\.float32: .*; nor as torch\.int64: .*out of range"
    ):
        one.act([[1, 2, 10]])
    with pytest.raises(
        ValueError, match=r"does not take contexts of shape \(1, 2\), neither as torch\.float32: .*expects 3 feat"
    ):
        sampler(network()).act([[1, 2]])
    assert len(one.act(WORDS)) == 4  # nothing was decided, and nothing was learned about it
    assert one.decided == 4


def test_integers_that_a_float_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match=r"integers that torch\.float32 cannot hold"):
        sampler(network()).act([[2**24 + 1, 0, 0]])


def test_complex_contexts_are_for_complex_networks() -> None:
    with pytest.raises(ValueError, match=r"the network takes real contexts, got torch\.complex64"):
        sampler(network()).act(torch.randn(2, 3, dtype=torch.complex64))

    class Magnitudes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2, dtype=torch.complex64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).abs()

    assert len(sampler(Magnitudes()).act(torch.randn(2, 3, dtype=torch.complex64))) == 2
