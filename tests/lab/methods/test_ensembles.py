"""Every method against what it stands for, in float64."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.nn import functional as F

import batchensemble as be
from batchensemble.lab.methods.ensembles import (
    METHODS,
    Batch,
    BatchEnsemble,
    Dropout,
    Naive,
    Single,
    method_from,
    settings_of,
)
from batchensemble.lab.methods.ensembles.batch_ensemble import pairwise_kl
from batchensemble.lab.models import resnet

DECAY = 1e-2
EVERY = [
    Single(),
    Naive(3),
    Naive(3, together=True),
    Dropout(rate=0.2),
    Dropout(rate=0.2, block_rate=0.1),
    BatchEnsemble(3),
    BatchEnsemble(3, rows="repeated", init="normal", diversity=0.1),
    BatchEnsemble(3, rows="own crops", norm="member", rank=2),
    BatchEnsemble(3, decay="mean", dropout=0.2),
]


def network(**options):
    return resnet(8, 1, 5, **options)


def images(rows, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 3, 8, 8, generator=generator, dtype=torch.float64)


def labels(rows):
    return torch.arange(rows) % 5


def batch(rows):
    return Batch(images(rows), labels(rows))


@pytest.mark.parametrize("method", EVERY, ids=str)
def test_contract(method):
    """Built the same from the same seed, trainable, asked for as many predictions as it says."""
    parts = method.parts(seed=1)
    models = [part.method.build(network, part.seed).double() for part in parts]
    again = parts[0].method.build(network, parts[0].seed).double()
    other = parts[0].method.build(network, parts[0].seed + 1).double()
    state = models[0].state_dict()
    assert all(torch.equal(state[name], value) for name, value in again.state_dict().items())
    assert any(not torch.equal(state[name], value) for name, value in other.state_dict().items())

    first, model = parts[0].method, models[0]
    rows = 6 * len(first.streams(1))
    scores = first.loss(model.train(), batch(rows), DECAY)
    scores["loss"].backward()
    groups = first.groups(model, 0.1, DECAY)
    grouped = [parameter for group in groups for parameter in group["params"]]
    assert {id(p) for p in grouped} == {id(p) for p in model.parameters()}
    assert all(p.grad is not None for p in grouped)
    assert 0 <= scores["accuracy"] <= 1

    with torch.no_grad():
        logits = method.logits([m.eval() for m in models], images(4), samples=2)
    assert logits.shape == (method.passes(2), 4, 5)
    assert method_from(settings_of(method)) == method


def test_a_method_without_a_name_is_told_how_to_get_one():
    class Mine(Naive):
        pass

    with pytest.raises(ValueError, match=r"Mine is none of single, .*METHODS\['its name'\] = Mine adds it"):
        settings_of(Mine())


def test_networks_trained_together_are_those_trained_alone():
    together = Naive(3, together=True)
    stacked = together.build(network, seed=2).double().train()
    rows, alone = batch(12), [part.method.build(network, part.seed) for part in Naive(3).parts(2)]
    assert [part.seed for part in Naive(3).parts(2)] == [stream.order for stream in together.streams(2)]
    together.loss(stacked, rows, 0.0)["loss"].backward()
    for i, net in enumerate(alone):
        net.double().train()
        own = slice(4 * i, 4 * i + 4)
        Single().loss(net, Batch(rows.images[own], rows.labels[own]), 0.0)["loss"].backward()
        for (name, mine), theirs in zip(net.named_parameters(), stacked.net.parameters(), strict=True):
            torch.testing.assert_close(theirs.grad[i], mine.grad, msg=name)
        for (name, mine), theirs in zip(net.named_buffers(), stacked.net.buffers(), strict=True):
            torch.testing.assert_close(theirs[i], mine, msg=name)


def test_dropout_has_as_many_parameters_as_batch_ensemble():
    paper = partial(resnet, 32, 4, 10)
    size = [sum(p.numel() for p in m.build(paper, 0).parameters()) for m in (Dropout(), BatchEnsemble())]
    assert size[1] == 7_466_652
    assert abs(size[0] - size[1]) < 150


def test_dropout_samples_differ_and_shared_features_change_nothing():
    method = Dropout(rate=0.5)
    model = method.build(network, 0).double().eval()
    with torch.no_grad():
        torch.manual_seed(0)
        samples = method.logits([model], images(4), samples=64)
        assert not torch.equal(samples[0], samples[1])
        torch.manual_seed(0)
        through = torch.stack([model(images(4)) for _ in range(64)])  # dropout is on, the norms are not training
    torch.testing.assert_close(samples, through)


def test_repeating_the_head_is_repeating_the_pass():
    method = BatchEnsemble(3, dropout=0.5)
    model = method.build(network, 0).double().eval()
    with torch.no_grad():
        torch.manual_seed(0)
        samples = method.logits([model], images(4), samples=5)
        torch.manual_seed(0)
        passes = torch.cat([model.members(images(4)) for _ in range(5)])
    torch.testing.assert_close(samples, passes)
    assert not torch.equal(samples[:3], samples[3:6])


@pytest.fixture
def ensemble():
    return BatchEnsemble(3).build(network, 0).double().eval()  # fixed statistics: rows do not see each other


def member_loss(model, member, rows):
    return F.cross_entropy(model(rows.images, member=member), rows.labels)


def test_sub_batches_are_dealt_in_order(ensemble):
    rows = batch(6)
    place = torch.arange(6)
    expected = torch.stack(
        [member_loss(ensemble, i, Batch(rows.images[2 * i :][:2], rows.labels[2 * i :][:2])) for i in range(3)]
    ).mean()
    dealt = BatchEnsemble(3).loss(ensemble, rows._replace(place=place, total=6), DECAY)
    torch.testing.assert_close(dealt["loss"], expected)
    dealt = BatchEnsemble(3).loss(ensemble.train(), rows, DECAY)  # without places: the ensemble deals by itself
    routed = BatchEnsemble(3).loss(ensemble, rows._replace(place=place, total=6), DECAY)
    torch.testing.assert_close(dealt["loss"], routed["loss"])


def test_a_shuffled_part_of_a_batch_keeps_its_members(ensemble):
    rows, place = batch(6), torch.tensor([5, 1, 3])
    part = Batch(rows.images[place], rows.labels[place], place, 6)
    losses = [member_loss(ensemble, int(p) // 2, Batch(rows.images[p : p + 1], rows.labels[p : p + 1])) for p in place]
    torch.testing.assert_close(BatchEnsemble(3).loss(ensemble, part, DECAY)["loss"], torch.stack(losses).mean())


def test_a_repeated_batch_is_the_mean_of_the_members_losses(ensemble):
    rows = batch(6)
    expected = torch.stack([member_loss(ensemble, i, rows) for i in range(3)]).mean()
    repeated = BatchEnsemble(3, rows="repeated").loss(ensemble, rows, DECAY)
    torch.testing.assert_close(repeated["loss"], expected)
    diverse = BatchEnsemble(3, rows="repeated", diversity=0.5).loss(ensemble, rows, DECAY)
    reward = pairwise_kl(ensemble.members(rows.images))
    torch.testing.assert_close(diverse["loss"], expected - 0.5 * reward)
    torch.testing.assert_close(diverse["cross_entropy"], expected)


def test_pairwise_kl_is_the_metric():
    logits = torch.randn(4, 7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert pairwise_kl(logits, most=9.0).item() == pytest.approx(be.metrics.pairwise_kl(logits.softmax(-1)))
    assert pairwise_kl(100 * logits).item() == 2.0


def test_both_decays_pull_equally_where_members_are_the_network():
    method = BatchEnsemble(3, init="ones")
    shared, mean = method, replace(method, decay="mean")
    rows, gradients = batch(6), []
    for kind in (shared, mean):
        model = kind.build(network, 0).double().train()
        kind.loss(model, rows, DECAY)["loss"].backward()
        (slow, *_) = kind.groups(model, 0.1, DECAY)
        gradients.append([p.grad + slow["weight_decay"] * p.detach() for p in slow["params"]])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match="same rows; got rows='sub-batches'"):
        BatchEnsemble(diversity=0.1)
    with pytest.raises(ValueError, match="single, naive, dropout, batch_ensemble; got 'bayes'"):
        method_from({"name": "bayes"})
    with pytest.raises(ValueError, match="naive has the settings members, together; got numbers"):
        method_from({"name": "naive", "numbers": 3})
    assert set(METHODS) == {"single", "naive", "dropout", "batch_ensemble"}
