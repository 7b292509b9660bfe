"""A folder brings everything back: after an end, a kill at any byte, a full disk; damage is named."""

import copy
import errno
import os
import pickle
import subprocess
import sys
import textwrap

import pytest
import torch
from test_bandits_sampler import QUICK, equal, filled, network, some, state

from batchensemble.bandits import ThompsonSampler, Training, journal
from batchensemble.bandits.ledger import Ledger


def reopened(folder, **options):
    torch.manual_seed(123)  # a network that starts elsewhere
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    return ThompsonSampler(net, members=4, folder=folder, **{"training": QUICK, **options})


def test_a_restart_goes_on_as_if_nothing_had_been(tmp_path):
    whole = filled(rounds=6)
    broken = filled(folder=tmp_path)
    broken.close()
    again = reopened(tmp_path)
    assert equal(state(again), state(filled()))
    for number in range(3, 6):
        made = again.act(some(10, number))
        again.update(made.ids[:8], made.arms[:8].float() + some(8, number)[:, 0])
    assert equal(state(again), state(whole))


def test_a_folder_stays_where_it_was_when_the_process_goes_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    sampler = filled(folder="decisions", rounds=2)
    monkeypatch.chdir(tmp_path / "elsewhere")
    made = sampler.act(some(10, 2))
    sampler.update(made.ids[:8], made.arms[:8].float() + some(8, 2)[:, 0])  # trains, and writes weights
    sampler.close()
    assert sampler.trainings == 1
    assert not list((tmp_path / "elsewhere").iterdir())
    assert equal(state(reopened(tmp_path / "decisions")), state(filled()))


def test_a_manual_training_is_kept(tmp_path):
    sampler = filled(folder=tmp_path)
    sampler.train()
    expected = state(sampler)
    sampler.close()
    assert equal(state(reopened(tmp_path)), expected)


def test_dropped_decisions_stay_dropped(tmp_path):
    sampler = filled(folder=tmp_path)
    sampler.drop([8])
    sampler.close()
    assert equal(state(reopened(tmp_path)), state(sampler))


def test_columns_of_a_log_are_kept_like_any_other_numbers(tmp_path):
    sampler, log = filled(folder=tmp_path, rounds=0), some(10, 0)
    made = sampler.act(log.T.contiguous().T)
    sampler.update(torch.stack([made.ids, made.arms], 1)[:, 0], log[:, 1])
    sampler.close()
    again = reopened(tmp_path)
    assert equal(state(again), state(sampler))
    assert torch.equal(again._ledger.rows(torch.arange(10))[2], log[:, 1])


def test_only_the_newest_weights_stay(tmp_path):
    filled(folder=tmp_path, rounds=6)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["journal", "weights-000000002.safetensors"]


def test_a_training_that_the_kill_cut_off_is_made_up_for(tmp_path):
    sampler = filled(folder=tmp_path, rounds=2)
    expected = filled(rounds=3)

    def killed(*_):
        raise KeyboardInterrupt

    made = sampler.act(some(10, 2))
    sampler._train = killed
    with pytest.raises(KeyboardInterrupt):
        sampler.update(made.ids[:8], made.arms[:8].float() + some(8, 2)[:, 0])
    sampler.close()
    again = reopened(tmp_path)
    assert expected.trainings == 1
    assert equal(state(again), state(expected))
    assert (tmp_path / "weights-000000001.safetensors").exists()


def test_a_file_cut_at_any_byte_of_the_last_event_loses_that_event_alone(tmp_path):
    sampler = filled(folder=tmp_path, rounds=1)
    before, size = state(sampler), (tmp_path / "journal").stat().st_size
    sampler.act(some(1))
    sampler.close()
    data = (tmp_path / "journal").read_bytes()
    for end in range(size, len(data), 7):
        (tmp_path / "journal").write_bytes(data[:end])
        again = reopened(tmp_path)
        assert equal(state(again), before), end
        again.close()
        assert (tmp_path / "journal").stat().st_size == size


def test_a_lost_page_at_the_end_reads_as_zeros(tmp_path):
    sampler = filled(folder=tmp_path, rounds=1)
    before = state(sampler)
    sampler.close()
    with (tmp_path / "journal").open("ab") as file:
        file.write(bytes(500))
    assert equal(state(reopened(tmp_path)), before)


@pytest.mark.parametrize("at", [2, 40, 200])
def test_damage_in_the_middle_is_an_error(tmp_path, at):
    filled(folder=tmp_path).close()
    data = bytearray((tmp_path / "journal").read_bytes())
    data[at] ^= 1
    (tmp_path / "journal").write_bytes(data)
    with pytest.raises(ValueError, match="damaged at byte 0"):
        reopened(tmp_path)
    data[at] ^= 1
    (tmp_path / "journal").write_bytes(data)
    reopened(tmp_path)  # the failed one held nothing


def test_a_journal_that_lost_acknowledged_rewards_is_refused(tmp_path):
    filled(folder=tmp_path, rounds=6).close()
    size = (tmp_path / "journal").stat().st_size
    os.truncate(tmp_path / "journal", size // 2)
    with pytest.raises(ValueError, match=r"truncated: .* was trained on 40 rewards"):
        reopened(tmp_path)


@pytest.mark.parametrize("lost", ["all after", "zeros after"])
def test_weights_that_the_power_cut_off_give_way_to_those_before(tmp_path, lost):
    sampler = filled(folder=tmp_path, rounds=6)
    expected = state(sampler)
    sampler.close()
    whole = (tmp_path / "weights-000000002.safetensors").read_bytes()
    left, rest = whole[: len(whole) // 2], bytes(len(whole) - len(whole) // 2)
    (tmp_path / "weights-000000003.safetensors").write_bytes(left if lost == "all after" else left + rest)
    assert equal(state(reopened(tmp_path)), expected)


def test_all_weights_damaged_is_an_error(tmp_path):
    filled(folder=tmp_path, rounds=6).close()
    (tmp_path / "weights-000000002.safetensors").write_bytes(b"half")
    with pytest.raises(ValueError, match="damaged"):
        reopened(tmp_path)


def test_a_full_disk_leaves_everything_as_it_was(tmp_path, monkeypatch):
    sampler = filled(folder=tmp_path)
    before, size = state(sampler), (tmp_path / "journal").stat().st_size
    really = os.write

    def full(file, data):
        really(file, bytes(data)[:10])
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(journal.os, "write", full)
    with pytest.raises(OSError, match="no space left"):
        sampler.act(some(2))
    monkeypatch.undo()
    assert equal(state(sampler), before)
    assert (tmp_path / "journal").stat().st_size == size
    sampler.act(some(2))
    expected = state(sampler)
    sampler.close()
    assert equal(state(reopened(tmp_path)), expected)


def test_two_samplers_never_share_a_folder(tmp_path):
    filled_one = filled(folder=tmp_path)
    with pytest.raises(RuntimeError, match="another process"):
        reopened(tmp_path)
    filled_one.close()
    reopened(tmp_path)


FORKED = """
    import os, sys
    from pathlib import Path
    from batchensemble.bandits.journal import Journal
    from batchensemble.locks import Busy
    path = Path(sys.argv[1])
    journal = Journal(path)
    stop, go_on = os.pipe()
    child = os.fork()
    if not child:
        {child}
    {parent}
    try:
        Journal(path)
        print("free")
    except Busy:
        print("held")
    os.write(go_on, b".")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize(
    ("child", "parent", "found"),
    [
        ("os.read(stop, 1), os._exit(0)", "journal.close()", "free"),
        ("journal.close(), os._exit(0)", "os.waitpid(child, 0)", "held"),
        ("sys.exit()  # which ends what weakref.finalize has left", "os.waitpid(child, 0)", "held"),
    ],
    ids=["a child that lives", "a child that closes", "a child that ends"],
)
def test_a_forked_child_neither_keeps_nor_frees_a_journal(tmp_path, child, parent, found):
    code = textwrap.dedent(FORKED).format(child=child, parent=parent)
    command = [sys.executable, "-W", "ignore", "-c", code, tmp_path / "journal"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == found


def test_another_network_is_refused(tmp_path):
    filled(folder=tmp_path).close()
    with pytest.raises(ValueError, match="does not fit this network"):
        ThompsonSampler(network(arms=5), members=4, folder=tmp_path)
    with pytest.raises(ValueError, match="does not fit this network"):
        ThompsonSampler(network(), members=3, folder=tmp_path, training=Training())


def test_an_interrupt_between_disk_and_memory(tmp_path, monkeypatch):
    sampler = filled(folder=tmp_path, rounds=1)
    made = sampler.act(some(3))

    def interrupted(event):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sampler, "_apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sampler.update(made.ids, [1.0, 2.0, 3.0])
    sampler.update(made.ids, [1.0, 2.0, 3.0])  # nobody told the caller that it had been written
    expected = state(sampler)
    sampler.close()
    assert equal(state(reopened(tmp_path)), expected)


@pytest.mark.parametrize("told", [0, 2], ids=["before memory", "within memory"])
def test_decisions_that_an_interrupt_kept_from_the_caller_await_nothing(tmp_path, monkeypatch, told):
    sampler = filled(folder=tmp_path, rounds=1)
    first, awaiting, decide = sampler.decided, sampler.awaiting, Ledger._decide

    def interrupted(ledger, event):
        decide(ledger, {**event, **{name: event[name][:told] for name in ("contexts", "arms", "members")}})
        ledger.decided = first
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_decide", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sampler.act(some(5))
    made = sampler.act(some(1))
    assert made.ids.tolist() == [first], "nobody was told of the others"
    assert (sampler.decided, sampler.awaiting) == (first + 1, awaiting + 1)
    sampler.close()
    again = reopened(tmp_path)
    assert equal(state(again), state(sampler))
    with pytest.raises(ValueError, match=f"no decision {first + 3} awaits a reward: it was never made"):
        again.update([first + 3], [1.0])


@pytest.mark.skipif(sys.platform == "win32", reason="the system cannot limit what a process may write")
def test_weights_that_do_not_fit_lose_nothing_and_the_error_says_so(tmp_path):
    import resource

    def start(**options):
        return ThompsonSampler(network(width=400), members=4, training=Training(every=4, steps=3), **options)

    sampler, whole = start(folder=tmp_path), start()
    contexts, rewards = some(6, width=400), [1.0, 2.0, 3.0, 4.0]
    for one in (sampler, whole):
        one.act(contexts)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = (tmp_path / "journal").stat().st_size + 1000
    assert room < (tmp_path / "weights-000000000.safetensors").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match=r"all rewards are on the disk, but not its weights\. Do not") as refused:
            sampler.update([0, 1, 2, 3], rewards)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "run again" not in str(refused.value)
    whole.update([0, 1, 2, 3], rewards)
    assert equal(state(sampler), state(whole))
    sampler.close()
    assert equal(state(start(folder=tmp_path)), state(whole))


def test_a_restart_repeats_no_training_that_was_asked_for_and_the_error_says_so(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "the disk is full")

    sampler = reopened(tmp_path, training=Training(every=0, steps=3))
    sampler.update(sampler.act(some(4)).ids, [1.0, 2.0, 3.0, 4.0])
    with monkeypatch.context() as patch:
        patch.setattr("batchensemble.bandits.sampler.write_weights", full)
        with pytest.raises(OSError, match=r"but not what train\(\) did"):
            sampler.train()
    sampler.close()
    again = reopened(tmp_path, training=Training(every=0, steps=3))
    assert (again.trainings, again.observed) == (0, 4)
    again.train()
    assert equal(state(again), state(sampler))


def test_a_closed_sampler_keeps_nothing_and_says_so(tmp_path):
    with filled(folder=tmp_path) as sampler:
        pass
    before = state(sampler)
    happenings = (
        lambda: sampler.act(some(1)),
        lambda: sampler.update([8], [1.0]),
        lambda: sampler.drop([8]),
        sampler.train,
    )
    for happen in happenings:
        with pytest.raises(ValueError, match="was closed"):
            happen()
    assert equal(state(sampler), before)


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_sampler_with_a_folder_is_not_copied(copied, tmp_path):
    sampler = filled(folder=tmp_path)
    with pytest.raises(TypeError, match=r"journal is written by one sampler alone.* save\(path\)"):
        copied(sampler)
    sampler.act(some(2))  # it goes on
    sampler.close()
    with pytest.raises(ValueError, match="closed"):
        copy.deepcopy(sampler).act(some(2))


def test_decisions_without_weights(tmp_path):
    filled(folder=tmp_path).close()
    for path in tmp_path.glob("weights-*"):
        path.unlink()
    with pytest.raises(ValueError, match="the weights that made them are gone"):
        reopened(tmp_path)
