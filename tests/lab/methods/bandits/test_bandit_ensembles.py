"""Ensembles of trials and members are what the library's own layers are, and what separate networks are."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import batchensemble as be
from batchensemble.lab.methods.bandits import BatchEnsemble, Dropout, Greedy, Naive, NetworkTraining, Setting, Streams
from batchensemble.lab.methods.bandits.batch_ensemble import BatchEnsembleAgent

TRAINING = NetworkTraining(hidden=(6,), batch=16, steps=3, every=10)


def started(method, seeds=(0, 1), width=4, arms=3, steps=40):
    return method.start(Setting(width, arms, steps, Streams(seeds)))


def fed(agent, steps=20, seed=0):
    """After some observations (and trainings)."""
    chance = torch.Generator().manual_seed(seed)
    trials = agent.setting.trials
    for _ in range(steps):
        contexts = torch.randn(trials, agent.setting.context_dim, generator=chance)
        arms = agent.act(contexts)
        agent.update(contexts, arms, contexts.gather(1, arms[:, None])[:, 0])
    return agent


def library_twin(agent: BatchEnsembleAgent, trial: int) -> be.Ensemble:
    """`be.convert` of a plain network, with the fast weights of one trial."""
    first, second = agent.sizes
    net = nn.Sequential(nn.Linear(*first), nn.ReLU(), nn.Linear(*second))
    model = be.convert(net, agent.nets, combine="mean").double()
    for layer, (weight, bias, s, r) in zip((model.net[0], model.net[2]), agent._grouped(), strict=True):
        parts = {"weight": weight[trial], "bias": bias[trial], "s": s[trial], "r": r[trial]}
        layer.load_state_dict({name: part.detach().double() for name, part in parts.items()})
    return model


@pytest.fixture
def agent():
    agent = fed(started(BatchEnsemble(members=3, training=TRAINING)))
    agent.parameters = [parameter.detach().double().requires_grad_() for parameter in agent.parameters]
    return agent


def test_members_of_all_trials_are_the_librarys_members(agent):
    seen = agent.minibatch()
    seen = seen._replace(contexts=seen.contexts.double(), rewards=seen.rewards.double())
    loss = agent.loss(seen)
    gradients = torch.autograd.grad(loss, agent.parameters)
    total = 0.0
    for trial in range(2):
        model = library_twin(agent, trial)
        outputs = model.members(seen.contexts[trial].T)  # (members, N, arms)
        arms = seen.arms[trial].expand(3, -1)[..., None]
        own = be.mean_loss(F.mse_loss, outputs.gather(2, arms)[..., 0], seen.rewards[trial, 0])
        own.backward()
        total += own.item()
        layers = (model.net[0], model.net[2])
        theirs = [getattr(layer, name).grad for layer in layers for name in ("weight", "bias", "s", "r")]
        for ours, expected in zip(gradients, theirs, strict=True):
            torch.testing.assert_close(ours[trial], expected)
    assert loss.item() == pytest.approx(total)


def test_a_decision_is_one_members_word(agent):
    contexts = torch.randn(2, 4, dtype=torch.float64)
    twins = [library_twin(agent, trial) for trial in range(2)]
    words = torch.stack([twin.members(contexts[i : i + 1])[:, 0] for i, twin in enumerate(twins)])
    asked = set()
    for _ in range(30):
        values = agent.values(contexts)
        for trial in range(2):
            same = (words[trial] - values[trial]).abs().amax(1) < 1e-12
            assert same.sum() == 1
            asked.add((trial, int(same.nonzero())))
    assert len(asked) == 6


def test_fast_weights_start_as_random_signs():
    agent = started(BatchEnsemble(members=40, training=TRAINING))
    for _, bias, s, r in agent._grouped():
        assert not bias.any()
        for fast in (s, r):
            assert set(fast.unique().tolist()) == {-1.0, 1.0}
            assert not torch.equal(fast[0], fast[1])


def test_naive_members_are_separate_networks():
    agent = fed(started(Naive(members=3, training=TRAINING)))
    layers = agent.layers()
    seen = agent.minibatch()
    assert seen.contexts.shape == (6, 4, 16)
    gradients = torch.autograd.grad(agent.loss(seen), agent.parameters)
    for number in range(6):
        net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
        for module, (weight, bias) in zip((net[0], net[2]), layers, strict=True):
            module.load_state_dict({"weight": weight[number], "bias": bias[number, :, 0]})
        values = net(seen.contexts[number].T).gather(1, seen.arms[number].T)
        F.mse_loss(values, seen.rewards[number].T).backward()
        torch.testing.assert_close(gradients[0][number], net[0].weight.grad)
        torch.testing.assert_close(gradients[3][number, :, 0], net[2].bias.grad)


def test_the_bootstrap_shows_a_network_what_its_coin_says():
    agent = fed(started(Naive(members=4, keep=0.7, training=TRAINING), steps=400), steps=400)
    counts = agent._shown._counts
    assert ((counts - 280).abs() < 4 * (400 * 0.21) ** 0.5).all()
    assert len(counts.unique()) > 1
    drawn = agent._shown.draw(5000).view(2, 4, 5000)
    for trial in range(2):
        for member in range(4):
            known = set(agent._shown._rows[trial, member, : counts[trial, member]].tolist())
            assert set(drawn[trial, member].tolist()) == known
            assert 0 in known  # the first observation goes to all


def test_dropout_drops_and_scales():
    agent = started(Dropout(keep=0.8, training=TRAINING))
    dropped = agent.drop(torch.ones(2, 1000, 3))
    assert set(dropped.unique().tolist()) == {0.0, 1.25}
    assert abs(dropped.mean().item() - 1) < 0.03
    assert not torch.equal(dropped[0], dropped[1])


def test_learning_rates_are_reset_only_where_asked():
    steps = {}
    for reset in (False, True):
        training = NetworkTraining(hidden=(6,), steps=3, every=10, batch=8, reset_lr=reset)
        steps[reset] = fed(started(Greedy(training)), steps=20).optimizer._steps
    assert steps == {False: 6, True: 3}


def test_every_arm_is_pulled_in_turn_first():
    agent = started(Greedy(NetworkTraining(first_pulls=2, every=100)))
    pulled = []
    for _ in range(6):
        contexts = torch.randn(2, 4)
        pulled.append(agent.act(contexts).tolist())
        agent.update(contexts, torch.tensor(pulled[-1]), torch.zeros(2))
    assert pulled == [[arm, arm] for arm in (0, 1, 2, 0, 1, 2)]
