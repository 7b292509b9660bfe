"""Tables: what is held out, and what the features and labels of the census are."""

import numpy as np
import pytest
import torch

from batchensemble.lab.data import load_table, rows

PERSON = "{age}, Private, 77516, BA, 13, Single, {job}, Wife, White, Female, 0, 0, 40, Cuba, {pay}"


@pytest.fixture
def census(tmp_path):
    """A hundred people with three occupations, of whom the older half earns more, and one without an occupation."""
    people = [
        PERSON.format(age=20 + i, job=("Cook", "Driver", "Nurse")[i % 3], pay=">50K" if i >= 50 else "<=50K")
        for i in range(100)
    ]
    (tmp_path / "adult.full").write_text("\n".join([*people, PERSON.format(age=1, job="?", pay="<=50K")]))
    return tmp_path


def test_income_is_told_from_everything_else(census):
    train, test = load_table("income", census)
    assert (len(train), len(test), train.classes) == (80, 20, 2)
    rows, labels = (torch.cat([getattr(train, name), getattr(test, name)]) for name in ("rows", "labels"))
    assert rows.shape == (100, 6 + 7 + 3)  # numbers, words with one value each, occupations
    assert torch.equal(labels.bool(), rows[:, 0] > rows[:, 0].median())  # by age


def test_occupation_is_told_from_everything_else(census):
    train, test = load_table("occupation", census)
    assert train.classes == 3
    assert train.rows.shape == (80, 6 + 7 + 2)  # two incomes in place of three occupations
    assert sorted(torch.cat([train.labels, test.labels]).bincount().tolist()) == [33, 33, 34]


def test_features_are_standardised_by_the_training_rows(census):
    train, _ = load_table("income", census)
    varies = train.rows.std(0) > 0
    assert varies.sum() == 1 + 3  # age and occupations
    torch.testing.assert_close(train.rows.mean(0), torch.zeros(train.rows.shape[1]), atol=1e-5, rtol=0)
    torch.testing.assert_close(train.rows[:, varies].std(0, correction=0), torch.ones(int(varies.sum())))


def test_rows_are_held_out_once_and_for_all():
    one, other = load_table("toy"), load_table("toy")
    assert all(torch.equal(a.rows, b.rows) for a, b in zip(one, other, strict=True))
    apart = {tuple(row) for row in one[0].rows.tolist()} & {tuple(row) for row in one[1].rows.tolist()}
    assert not apart


def test_the_shuttle_has_seven_states(tmp_path, monkeypatch):
    measured = np.arange(43_500 * 10).reshape(-1, 10) % 7 + 1
    np.savetxt(tmp_path / "shuttle.trn", measured, fmt="%d")
    monkeypatch.setattr(rows, "check", lambda path, md5: None)
    train, test = load_table("shuttle", tmp_path)
    assert (train.classes, train.rows.shape[1], len(train) + len(test)) == (7, 9, 43_500)


def test_an_unknown_table_is_named():
    with pytest.raises(ValueError, match=r"income, occupation, shuttle, toy; got 'wine'"):
        load_table("wine")


def test_the_census_is_checked_by_its_checksum(tmp_path):
    (tmp_path / "adult.data").write_text("not the census")
    with pytest.raises(ValueError, match=r"adult\.data"):
        load_table("income", tmp_path)
