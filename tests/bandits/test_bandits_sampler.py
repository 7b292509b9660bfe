"""Decisions, delayed rewards, learning, files; errors that change nothing."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import batchensemble as be
from batchensemble.bandits import ThompsonSampler, Training

QUICK = Training(every=20, steps=10, batch_size=16)


def network(width=3, arms=2):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, arms))


def state(sampler):
    """Everything that a sampler is, to compare."""
    parts = {**sampler._trainer.state(), **sampler._ledger.state()}
    parts["numbers"] = torch.tensor([sampler.trainings, sampler.decided, sampler.observed, sampler.awaiting])
    return {name: tensor.clone() for name, tensor in parts.items()}


def equal(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def some(count, seed=0, width=3):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


def filled(rounds=3, **options):
    """A sampler with observations, trainings and decisions that await rewards."""
    sampler = ThompsonSampler(network(), members=4, training=QUICK, **options)
    for number in range(rounds):
        made = sampler.act(some(10, number))
        sampler.update(made.ids[:8], made.arms[:8].float() + some(8, number)[:, 0])
    return sampler


def test_the_network_given_is_left_alone():
    net = network()
    before = [parameter.clone() for parameter in net.parameters()]
    sampler = ThompsonSampler(net, members=3, training=Training(every=5, steps=3))
    made = sampler.act(some(6))
    sampler.update(made.ids, torch.ones(6))
    assert sampler.trainings == 1
    assert all(torch.equal(old, new) for old, new in zip(before, net.parameters(), strict=True))


@pytest.mark.parametrize("clip", [0.1, 5.0])
def test_gradients_are_no_longer_than_they_may_be(clip):
    sampler = ThompsonSampler(network(), members=3, training=Training(every=0, steps=1, clip=clip))
    sampler.update(sampler.act(some(6)).ids, torch.full((6,), 1e4))
    sampler.train()
    gradients = [parameter.grad for parameter in sampler.model.parameters()]
    assert torch.nn.utils.get_total_norm(gradients).item() == pytest.approx(clip, rel=1e-3)


@pytest.mark.skipif(torch.__version__ < "2.13", reason="Adam itself counts its steps on the default device")
def test_it_does_not_matter_where_torch_puts_tensors_by_default(tmp_path):
    expected, net = filled(rounds=6), network()
    with torch.device("meta"):  # any device but the CPU, where the network and the contexts are
        sampler = ThompsonSampler(net, members=4, training=QUICK, folder=tmp_path / "folder")
        for number in range(6):
            with torch.device("cpu"):
                contexts, rewards = some(10, number), some(8, number)[:, 0]
            made = sampler.act(contexts)
            sampler.update(made.ids[:8].tolist(), (made.arms[:8].float() + rewards).tolist())
            if number == 2:
                sampler.close()
                sampler = ThompsonSampler(net, members=4, training=QUICK, folder=tmp_path / "folder")
        sampler.save(tmp_path / "file")
        again = ThompsonSampler.load(tmp_path / "file", net)
    assert sampler.trainings == 2
    assert equal(state(sampler), state(expected))
    assert equal(state(again), state(expected))


def test_an_ensemble_is_taken_as_it_is():
    model = be.convert(network(), members=5, combine="mean")
    assert ThompsonSampler(model).model is model
    with pytest.raises(ValueError, match="5 members, not 3"):
        ThompsonSampler(model, members=3)


def test_every_context_is_decided_by_its_own_member():
    sampler = ThompsonSampler(network(), members=4, first_pulls=0)
    x = some(200)
    made = sampler.act(x)
    values = sampler.model.members(x)  # (members, N, arms)
    assert torch.equal(made.arms, values.argmax(2)[made.members, torch.arange(200)])
    assert set(made.members.tolist()) == {0, 1, 2, 3}
    counts = torch.bincount(sampler.act(some(4000)).members, minlength=4)
    assert (counts - 1000).abs().max() < 4 * (4000 * 3 / 16) ** 0.5  # four standard deviations


def test_arms_are_tried_in_turn_at_first():
    sampler = ThompsonSampler(network(arms=3), members=2, first_pulls=2)
    arms = torch.cat([sampler.act(some(2)).arms, sampler.act(some(5)).arms])
    assert arms[:6].tolist() == [0, 1, 2, 0, 1, 2]


def test_rewards_come_late_and_in_any_order():
    sampler = ThompsonSampler(network(), members=2)
    x = some(4)
    ids = sampler.act(x).ids
    later = sampler.act(some(3, seed=1))
    sampler.update([int(ids[3]), int(later.ids[0])], [3.0, 4.0])
    sampler.update(int(ids[1]), 1.0)
    contexts, arms, rewards = sampler._ledger.rows(torch.arange(3))
    assert rewards.tolist() == [3.0, 4.0, 1.0]
    assert torch.equal(contexts[[0, 2]], x[[3, 1]])
    assert int(arms[1]) == int(later.arms[0])
    assert (sampler.decided, sampler.observed, sampler.awaiting) == (7, 3, 4)


def test_the_caller_may_reuse_its_tensor():
    sampler = ThompsonSampler(network(), members=2)
    x = some(1)
    made = sampler.act(x)
    kept = x.clone()
    x.zero_()
    sampler.update(made.ids, [1.0])
    assert torch.equal(sampler._ledger.rows(torch.tensor([0]))[0], kept)


def test_rewards_may_come_from_a_computation_that_tracks_gradients():
    sampler = ThompsonSampler(network(), members=2, training=Training(every=4, steps=3, batch_size=4))
    for _ in range(2):
        made = sampler.act(some(4))
        sampler.update(made.ids, torch.ones(4, requires_grad=True) * 2)
    assert sampler.trainings == 2
    assert not any(part.requires_grad for part in sampler._ledger.rows(torch.tensor([0])))


def test_a_full_buffer_forgets_the_oldest():
    sampler = ThompsonSampler(network(), members=2, buffer=5, training=Training(every=0))
    made = sampler.act(some(8))
    sampler.update(made.ids, torch.arange(8.0))
    assert sorted(sampler._ledger.rows(torch.arange(5))[2].tolist()) == [3, 4, 5, 6, 7]
    assert sampler.observed == 8


def test_it_learns_which_arm_is_better():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
    sampler = ThompsonSampler(net, members=4, training=Training(every=50, steps=50))
    for number in range(8):
        x = some(50, number, width=2)
        made = sampler.act(x)
        sampler.update(made.ids, (made.arms == (x[:, 0] > 0)).float())  # arm 1 right of the axis, arm 0 left of it
    x = some(500, 99, width=2)
    assert (sampler.act(x).arms == (x[:, 0] > 0)).float().mean() > 0.9
    found = sampler.predict(x)
    assert found.mean.shape == found.std.shape == (500, 2)


def test_clicks_are_learnt_by_their_own_loss():
    loss = nn.functional.binary_cross_entropy_with_logits
    sampler = ThompsonSampler(network(), members=2, training=QUICK, loss=loss)
    made = sampler.act(some(20))
    sampler.update(made.ids, torch.ones(20))
    assert sampler.trainings == 1


def test_training_is_the_same_from_the_same_seed_and_leaves_random_numbers_alone():
    first = filled(seed=3)
    before = torch.get_rng_state()
    first.train()
    assert torch.equal(before, torch.get_rng_state())
    second = filled(seed=3)
    second.train()
    assert equal(state(first), state(second))
    assert not equal(state(first), state(filled(seed=4)))


def test_dropout_in_the_network_does_not_spoil_that():
    def one():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        sampler = ThompsonSampler(net, members=2, training=QUICK)
        torch.manual_seed(int(torch.randint(99, (1,))))
        made = sampler.act(some(20))
        before = torch.get_rng_state()
        sampler.update(made.ids, torch.ones(20))
        assert torch.equal(before, torch.get_rng_state())
        return state(sampler)

    assert equal(one(), one())


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.act(torch.ones(2, 4)), r"shape \(N, 3\), got \(2, 4\)"),
        (lambda s: s.act(torch.ones(3)), r"shape \(N, ...\), got \(3,\)"),
        (lambda s: s.act(torch.tensor([[1.0, float("nan"), 0.0]])), "must be finite"),
        (lambda s: s.update([8], [float("nan")]), "finite, got nan"),
        (lambda s: s.update([8], [float("inf")]), "finite, got inf"),
        (lambda s: s.update([8, 9], [1.0]), "each of 2 ids, got 1"),
        (lambda s: s.update([8, 1000], [1.0, 1.0]), "1000 awaits a reward: it was never made"),
        (lambda s: s.update([-1], [1.0]), "-1 awaits a reward: it was never made"),
        (lambda s: s.update([8, 0], [1.0, 1.0]), "0 awaits a reward: it has its reward"),
        (lambda s: s.update([8, 8], [1.0, 1.0]), "8 is there more often"),
        (lambda s: s.drop([0]), "0 awaits"),
    ],
)
def test_bad_input_changes_nothing(act, message, tmp_path):
    sampler = filled(folder=tmp_path)
    before, size = state(sampler), (tmp_path / "journal").stat().st_size
    with pytest.raises(ValueError, match=message):
        act(sampler)
    assert equal(state(sampler), before)
    assert (tmp_path / "journal").stat().st_size == size


def test_ids_are_integers():
    sampler = filled()
    with pytest.raises(TypeError, match=r"integers, not torch.float32"):
        sampler.update([8.0], [1.0])


def test_first_contexts_that_do_not_fit_the_network():
    sampler = ThompsonSampler(network(), members=2)
    with pytest.raises(ValueError, match=r"does not take contexts of shape \(2, 5\)"):
        sampler.act(torch.ones(2, 5))
    with pytest.raises(ValueError, match=r"does not take contexts of shape \(2, 5\)"):
        sampler.predict(torch.ones(2, 5))
    assert sampler.decided == 0
    assert len(sampler.act(some(2))) == 2


def test_a_network_of_another_kind_is_refused():
    sampler = ThompsonSampler(nn.Sequential(nn.Linear(3, 4), nn.Unflatten(1, (2, 2))), members=2)
    with pytest.raises(ValueError, match=r"must give \(N, arms\) for 5 contexts, got \(5, 2, 2\)"):
        sampler.act(some(5))


def test_what_will_never_be_rewarded_is_dropped():
    sampler = filled()
    sampler.drop([8, 9])
    assert sampler.awaiting == 4
    with pytest.raises(ValueError, match="8 awaits a reward: it has its reward or was dropped"):
        sampler.update([8], [1.0])


def test_nothing_to_learn_from():
    with pytest.raises(ValueError, match="no reward yet"):
        ThompsonSampler(network(), members=2).train()


def test_a_training_that_diverges_keeps_the_weights_of_before():
    sampler = ThompsonSampler(network(), members=2, training=Training(every=4), loss=lambda p, r: ((p - r) / 0).sum())
    before = state(sampler)["model.0.weight"]
    made = sampler.act(some(4))
    with pytest.warns(UserWarning, match="training 1 diverged"):
        sampler.update(made.ids, torch.ones(4))
    assert torch.equal(state(sampler)["model.0.weight"], before)
    assert sampler.observed == 4


def test_what_the_optimiser_remembers_is_not_spoilt_by_a_training_that_diverged():
    scale = [1.0]
    sampler = ThompsonSampler(
        network(), members=2, training=Training(every=0, steps=3), loss=lambda p, r: ((p - r) / scale[0]).square().sum()
    )
    sampler.update(sampler.act(some(4)).ids, torch.ones(4))
    sampler.train()
    before = {name: tensor.clone() for name, tensor in sampler._trainer.state().items()}
    scale[0] = 0.0
    with pytest.warns(UserWarning, match="training 2 diverged"):
        sampler.train()
    assert any(name.startswith("optimizer.") for name in before)
    assert equal(sampler._trainer.state(), before)


def test_an_error_in_the_loss_leaves_the_weights_and_keeps_the_rewards(tmp_path):
    def broken(predicted, rewards):
        raise ArithmeticError("mine")

    options = {"members": 2, "training": Training(every=4, steps=3), "folder": tmp_path}
    sampler = ThompsonSampler(network(), loss=broken, **options)
    before = state(sampler)["model.0.weight"]
    made = sampler.act(some(4))
    with pytest.raises(ArithmeticError, match="mine"):
        sampler.update(made.ids, torch.ones(4))
    assert torch.equal(state(sampler)["model.0.weight"], before)
    assert not sampler.model.training
    sampler.close()
    again = ThompsonSampler(network(), **options)  # with a loss that works, the training is made up for
    assert (again.observed, again.trainings) == (4, 1)


def test_save_and_load(tmp_path):
    sampler = filled(seed=2)
    sampler.save(tmp_path / "sampler.safetensors")
    torch.manual_seed(9)
    other = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    loaded = ThompsonSampler.load(tmp_path / "sampler.safetensors", other, training=QUICK)
    assert equal(state(loaded), state(sampler))
    for one in (sampler, loaded):  # and both go on alike
        made = one.act(some(30, 7))
        one.update(made.ids, made.arms.float())
    assert equal(state(loaded), state(sampler))
    with pytest.raises(ValueError, match=r"expected contexts of shape \(N, 3\)"):
        loaded.act(torch.ones(1, 2))


def test_a_fresh_sampler_is_saved_too(tmp_path):
    ThompsonSampler(network(), members=2).save(tmp_path / "fresh.safetensors")
    assert ThompsonSampler.load(tmp_path / "fresh.safetensors", network()).decided == 0


def test_a_truncated_file_and_one_of_another_network(tmp_path):
    path = tmp_path / "sampler.safetensors"
    filled().save(path)
    with pytest.raises(ValueError, match="does not fit this network"):
        ThompsonSampler.load(path, network(arms=3))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="damaged"):
        ThompsonSampler.load(path, network())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
def test_a_copy_goes_on_as_the_original_would(copied):
    sampler, before = filled(), state(filled())
    twin = copied(sampler)
    for one in (twin, sampler):
        assert equal(state(one), before)  # the twin has changed nothing of the original
        made = one.act(some(10, seed=9))
        one.update(made.ids, made.arms.float())
        assert not equal(state(one), before)
    assert equal(state(twin), state(sampler))


def test_what_is_copied_beside_a_sampler_stays_its_own():
    sampler = filled()
    twin, model = copy.deepcopy((sampler, sampler.model))
    assert twin.model is model is not sampler.model


def test_a_sampler_is_copied_between_decisions():
    sampler = filled(0)
    with ThreadPoolExecutor(4) as pool:
        decisions = [pool.submit(sampler.act, some(5, seed)) for seed in range(40)]
        copies = list(pool.map(copy.deepcopy, [sampler] * 10))
        assert all(job.result() for job in decisions)
    assert all(twin.awaiting == twin.decided for twin in copies)


def test_threads_share_a_sampler():
    sampler = ThompsonSampler(network(), members=2, training=Training(every=25, steps=2))

    def work(seed):
        for number in range(10):
            made = sampler.act(some(3, 100 * seed + number))
            sampler.update(made.ids, torch.ones(3))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # which raises what a thread raised
    assert (sampler.decided, sampler.observed, sampler.awaiting) == (120, 120, 0)
    assert sampler.trainings == 4
