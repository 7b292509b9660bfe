"""Regret by hand; ranks, errors and p-values against scipy."""

import pytest
import scipy.stats
import torch

from batchensemble.metrics import cumulative_regret, mean_rank, paired_test, relative_regret, standard_error


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_cumulative_regret_adds_up() -> None:
    optimal, obtained = normal(3, 20), normal(3, 20, seed=1)
    found = cumulative_regret(optimal, obtained)
    for trial in range(3):
        total = 0.0
        for step in range(20):
            total += (optimal[trial, step] - obtained[trial, step]).item()
            assert found[trial, step].item() == pytest.approx(total)
    assert cumulative_regret(torch.tensor([5, 5]), torch.tensor([5, -35])).tolist() == [0, 40]


def test_regret_relative_to_uniform() -> None:
    assert relative_regret(torch.tensor([0, 10, 80]), torch.tensor([40, 40, 40])).tolist() == [0, 25, 200]
    assert relative_regret(torch.tensor(5.0), torch.tensor(20.0)).item() == 25
    with pytest.raises(ValueError, match="must be positive, but one is 0"):
        relative_regret(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 0.0]))
    with pytest.raises(ValueError, match=r"the same trials, got \(2,\) and \(3,\)"):
        relative_regret(torch.ones(2), torch.ones(3))


@pytest.mark.parametrize("levels", [None, 2], ids=["distinct", "tied"])
def test_mean_rank_against_scipy(levels) -> None:
    values = normal(9, 5) if levels is None else (normal(9, 5) * levels).round()
    expected = scipy.stats.rankdata(values.numpy(), method="average", axis=0).mean(-1)
    assert mean_rank(values).tolist() == pytest.approx(expected.tolist())


def test_everyone_equal_shares_the_middle_rank() -> None:
    assert mean_rank(torch.ones(4, 3)).tolist() == [2.5] * 4
    assert mean_rank(torch.ones(1, 3)).tolist() == [1]


def test_standard_error_against_scipy() -> None:
    values = normal(12, 7)
    torch.testing.assert_close(standard_error(values), torch.from_numpy(scipy.stats.sem(values.numpy(), axis=0)))
    assert standard_error(values[:, 0]).item() == pytest.approx(scipy.stats.sem(values[:, 0].numpy()))
    assert standard_error(torch.tensor([3.0, 3.0])).item() == 0
    with pytest.raises(ValueError, match="two trials at least"):
        standard_error(torch.tensor([3.0]))


def scipy_p_value(first: torch.Tensor, second: torch.Tensor) -> float:
    return scipy.stats.permutation_test(
        (first.numpy(), second.numpy()),
        lambda x, y, axis: (x - y).mean(axis),
        permutation_type="samples",
        n_resamples=2**16,
        vectorized=True,
    ).pvalue.item()


@pytest.mark.parametrize("trials", [2, 5, 12])
@pytest.mark.parametrize("shift", [0.0, 0.5, 3.0])
def test_paired_test_against_scipy(trials, shift) -> None:
    first, second = normal(trials), normal(trials, seed=1) + shift
    assert paired_test(first, second) == pytest.approx(scipy_p_value(first, second), abs=1e-12)
    assert paired_test(first, second) == paired_test(second, first)


def test_paired_test_with_ties_and_rounding() -> None:
    first, second = torch.tensor([0.3, 0.1, 0.7, 0.4]), torch.tensor([0.1, 0.3, 0.5, 0.4])
    first, second = first.double(), second.double()
    assert paired_test(first, second) == pytest.approx(scipy_p_value(first, second), abs=1e-12)
    assert paired_test(first, first) == 1
    assert paired_test(first[:1], second[:1]) == 1  # one trial proves nothing


def test_many_trials_are_sampled() -> None:
    first, second = normal(30), normal(30, seed=1) + 0.3
    found = paired_test(first, second, resamples=50_000, generator=torch.Generator().manual_seed(0))
    again = paired_test(first, second, resamples=50_000, generator=torch.Generator().manual_seed(0))
    assert found == again
    # A paired t-test on normal differences agrees well; 0.01 is five standard errors of the sampling.
    assert found == pytest.approx(scipy.stats.ttest_rel(first.numpy(), second.numpy()).pvalue, abs=0.01)


def test_sampling_agrees_with_counting_and_never_says_zero() -> None:
    first = torch.arange(17.0)
    assert paired_test(first + 5, first, resamples=999) == 1 / 1000
    differences = normal(17) + 0.2
    patterns = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 17).double()
    exact = ((patterns @ differences).abs() >= differences.sum().abs() - 1e-9).double().mean().item()
    found = paired_test(differences, torch.zeros(17), generator=torch.Generator().manual_seed(1))
    assert found == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("resamples", [1, 9_999, 10_000, 10_001])
def test_as_many_patterns_are_drawn_as_were_asked_for(resamples: int) -> None:
    equal = torch.ones(17)
    assert paired_test(equal, equal, resamples) == 1  # every pattern counts


def test_up_to_sixteen_trials_all_patterns_are_counted() -> None:
    better = torch.arange(1.0, 17.0)
    assert paired_test(better, torch.zeros(16), resamples=1) == 2 / 2**16


def test_trials_are_on_the_cpu_wherever_torch_puts_tensors() -> None:
    first, second = torch.tensor([3.0, 4.0, 5.0, 6.0]), torch.tensor([2.0, 2.0, 4.0, 5.0])
    with torch.device("meta"):  # any device but the CPU
        assert paired_test(first, second) == 2 / 16


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"one shape \(..., steps\), got \(3,\) and \(4,\)"):
        cumulative_regret(torch.ones(3), torch.ones(4))
    with pytest.raises(ValueError, match="obtained rewards must be finite"):
        cumulative_regret(torch.ones(2), torch.tensor([1.0, torch.nan]))
    with pytest.raises(ValueError, match="values must be finite"):
        mean_rank(torch.full((2, 2), torch.nan))
    with pytest.raises(ValueError, match=r"\(methods, problems\), got \(3,\)"):
        mean_rank(torch.ones(3))
    with pytest.raises(ValueError, match="same trials twice, got 3 and 4"):
        paired_test(torch.ones(3), torch.ones(4))
    with pytest.raises(ValueError, match="resamples=0"):
        paired_test(torch.ones(20), torch.ones(20), resamples=0)
