"""Arms that may not always be chosen: who chooses among the others, whose turn it is, what a journal replays."""

import numpy as np
import pytest
import torch
from test_bandits_folder import reopened
from test_bandits_sampler import QUICK, equal, filled, network, some, state

from batchensemble.bandits import ThompsonSampler, ledger
from batchensemble.bandits.journal import Journal
from batchensemble.bandits.turns import with_turns

ARMS = 5


def sampler(first_pulls=0, **options):
    return ThompsonSampler(network(arms=ARMS), members=4, first_pulls=first_pulls, training=QUICK, **options)


def masks(rows, seed=0):
    """Random masks; every row has one arm at least."""
    mask = torch.rand(rows, ARMS, generator=torch.Generator().manual_seed(seed)) > 0.6
    mask[torch.arange(rows), torch.arange(rows) % ARMS] = True
    return mask


def test_every_member_chooses_its_best_of_the_arms_that_may_be_chosen():
    one, x, mask = sampler(), some(300), masks(300)
    values = one.model.members(x)  # (members, N, arms)
    made = one.act(x, mask)
    for row, (member, arm) in enumerate(zip(made.members.tolist(), made.arms.tolist(), strict=True)):
        allowed = mask[row].nonzero()[:, 0].tolist()
        assert arm == max(allowed, key=lambda each: values[member, row, each].item())
    assert not torch.equal(made.arms, sampler().act(x).arms)


def test_a_mask_changes_no_draw_of_members_and_one_of_all_arms_changes_nothing():
    x = some(50)
    free, masked, whole = sampler().act(x), sampler().act(x, masks(50)), sampler().act(x, torch.ones(50, ARMS).bool())
    assert torch.equal(free.members, masked.members)
    assert torch.equal(free.arms, whole.arms)


@pytest.mark.parametrize("kind", [torch.tensor, np.array, list])
def test_one_mask_for_all_rows(kind):
    mask = kind([False, True, False, True, False])
    assert set(sampler(first_pulls=1).act(some(50), arms=mask).arms.tolist()) == {1, 3}


@pytest.mark.parametrize(
    ("arms", "error", "message"),
    [
        (torch.ones(ARMS), TypeError, r"must be booleans, .* got torch.float32"),
        ([1, 3], TypeError, r"must be booleans, .* got torch.int64"),
        (torch.ones(4).bool(), ValueError, r"arms of shape \(5,\) or \(3, 5\), got \(4,\)"),
        (torch.ones(1, ARMS).bool(), ValueError, r"arms of shape \(5,\) or \(3, 5\), got \(1, 5\)"),
        (torch.ones(ARMS, 3).bool(), ValueError, r"arms of shape \(5,\) or \(3, 5\), got \(5, 3\)"),
        (torch.zeros(ARMS).bool(), ValueError, "row 0 has none"),
        (torch.tensor([True, False, True])[:, None].expand(3, ARMS), ValueError, "row 1 has none"),
    ],
)
def test_bad_masks_change_nothing(arms, error, message, tmp_path):
    one = sampler(first_pulls=1, folder=tmp_path)
    one.act(some(2), masks(2))
    before, size = state(one), (tmp_path / "journal").stat().st_size
    with pytest.raises(error, match=message):
        one.act(some(3), arms)
    assert equal(state(one), before)
    assert (tmp_path / "journal").stat().st_size == size


def test_an_arm_that_missed_its_turn_has_it_as_soon_as_it_may():
    one = sampler(first_pulls=2)
    without_one = torch.tensor([True, False, True, True, True])
    arms = one.act(some(10), without_one).arms
    assert torch.bincount(arms)[[0, 2, 3, 4]].min() >= 2
    assert one._ledger.owed == [1, 1]
    one.act(some(30), without_one)
    assert one._ledger.owed == [1, 1]
    mask = without_one.repeat(4, 1)
    mask[1:, 1] = True
    assert one.act(some(4), mask).arms[1:3].tolist() == [1, 1]
    assert one._ledger.owed == []


def test_an_arm_has_a_turn_that_it_missed_within_the_same_call():
    mask = torch.ones(8, ARMS).bool()
    mask[: ARMS + 1, 2] = False
    one = sampler(first_pulls=1)
    assert one.act(some(8), mask).arms[ARMS + 1] == 2, "the first row that may"


@pytest.mark.parametrize("seed", range(20))
def test_turns_do_not_depend_on_how_rows_are_cut_into_calls(seed):
    mask, owed, pulled = masks(30, seed), [], []
    chosen, ids = mask.int().argmax(1), torch.arange(30)
    for row in range(30):
        arm, owed = with_turns(chosen[row : row + 1], mask[row : row + 1], ids[row : row + 1], 2, owed)
        pulled.append(arm.item())
    whole, still = with_turns(chosen, mask, ids, 2, [])
    assert (whole.tolist(), still) == (pulled, owed)


def test_whatever_the_masks_every_arm_has_its_first_pulls():
    one, pulls = sampler(first_pulls=3), torch.zeros(ARMS, dtype=torch.int64)
    for number in range(12):
        mask = masks(4, number)
        arms = one.act(some(4, number), mask).arms
        assert mask[torch.arange(4), arms].all()
        pulls += torch.bincount(arms, minlength=ARMS)
    assert one._ledger.owed == []
    assert pulls.min() >= 3


def play(one, rounds):
    """Rounds with masks for all rows or for each; the last arm may not be chosen in the first of them."""
    for number in rounds:
        mask = masks(10, number)
        mask[:, 0], mask[:, -1] = True, number > 3
        made = one.act(some(10, number), mask if number % 2 else mask[0])
        one.update(made.ids[:8], made.arms[:8].float() + some(8, number)[:, 0])


def test_a_journal_with_masks_replays_to_the_same_state(tmp_path):
    whole, broken = sampler(first_pulls=4), sampler(first_pulls=4, folder=tmp_path)
    play(broken, range(3))
    expected = state(broken)
    assert broken._ledger.owed
    broken.close()
    again = sampler(first_pulls=4, folder=tmp_path)
    assert equal(state(again), expected)
    play(again, range(3, 8))
    play(whole, range(8))
    assert whole.trainings == 3
    assert equal(state(again), state(whole))


@pytest.mark.parametrize("at", ["before memory", "within memory"])
def test_turns_of_decisions_that_nobody_was_told_of_come_again(tmp_path, monkeypatch, at):
    one = sampler(first_pulls=1, folder=tmp_path)
    apply = ledger.Ledger._decide

    def interrupted(book, event):
        if at == "within memory":
            event["contexts"] = event["contexts"][:2]
            apply(book, event)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger.Ledger, "_decide", interrupted)
        with pytest.raises((KeyboardInterrupt, ValueError)):
            one.act(some(3), [False, False, True, True, True])
    assert one._ledger.owed == []
    assert one.act(some(3)).arms.tolist() == [0, 1, 2]
    expected = state(one)
    one.close()
    assert equal(state(sampler(first_pulls=1, folder=tmp_path)), expected)


def test_saved_files_know_who_is_owed(tmp_path):
    one = sampler(first_pulls=4)
    play(one, range(3))
    one.save(tmp_path / "file")
    again = ThompsonSampler.load(tmp_path / "file", network(arms=ARMS), training=QUICK)
    assert equal(state(again), state(one))
    for each in (one, again):
        play(each, range(3, 6))
    assert equal(state(again), state(one))


def test_journals_and_files_from_before_masks_are_read(tmp_path, monkeypatch):
    append, of = Journal.append, ledger.Ledger.state

    def without(parts):
        return {name: part for name, part in parts.items() if name != "owed"}

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", lambda journal, event: append(journal, without(event)))
        patch.setattr(ledger.Ledger, "state", lambda book: without(of(book)))
        old = filled(folder=tmp_path / "folder", first_pulls=20)
        old.save(tmp_path / "file")
        old.close()
    expected = state(old)
    again = reopened(tmp_path / "folder", first_pulls=20)
    loaded = ThompsonSampler.load(tmp_path / "file", network(), training=QUICK)
    for one in (again, loaded):
        assert equal(state(one), expected)
        assert one.act(some(10, 9)).arms.tolist() == [0, 1] * 5  # forty turns, of which thirty were had
