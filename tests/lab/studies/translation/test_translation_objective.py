"""What a translator minimises, against torch's own loss; members' losses against their extracted networks."""

import pytest
import torch
import torch.nn.functional as F

import batchensemble as be
from batchensemble.lab.data.text import PAD
from batchensemble.lab.models.transformer import SELF_ATTENTION, transformer
from batchensemble.lab.studies.translation.batches import Batch
from batchensemble.lab.studies.translation.objective import (
    inputs,
    mean_log_prob,
    member_log_probs,
    objective,
    translated,
)
from batchensemble.lab.studies.translation.recipe import Members


def batch(rows=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    source, target = (torch.randint(3, 30, (rows, 7), generator=generator) for _ in range(2))
    lengths = torch.randint(2, 8, (rows, 1), generator=generator)
    return Batch(source, torch.where(torch.arange(7) < lengths, target, PAD))


@pytest.fixture(scope="module")
def model():
    net = transformer(30, "toy", dropout=0.0, inner_dropout=0.0, generator=torch.Generator().manual_seed(0)).double()
    generator = torch.Generator().manual_seed(1)
    return be.convert(net, 4, include=SELF_ATTENTION, init="normal", generator=generator)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_torchs(smoothing):
    logits = torch.randn(8, 7, 30, generator=torch.Generator().manual_seed(1))
    target = batch().target
    scores = translated(logits, target, smoothing)
    flat = logits.flatten(0, 1), target.flatten()
    torch.testing.assert_close(scores["loss"], F.cross_entropy(*flat, ignore_index=PAD, label_smoothing=smoothing))
    torch.testing.assert_close(scores["nll"], F.cross_entropy(*flat, ignore_index=PAD))
    assert scores["tokens"] == (target != PAD).sum()


def test_the_network_sees_only_the_words_before():
    given = inputs(Batch(torch.tensor([[5, 1]]), torch.tensor([[7, 8, 1]])))
    assert given["decoder_input_ids"].tolist() == [[PAD, 7, 8]]


def test_dealt_sentences_are_the_members_own(model):
    data = batch()
    losses = []
    for member in range(4):
        rows = slice(2 * member, 2 * member + 2)
        part = Batch(data.source[rows], data.target[rows])
        logits = model.extract(member)(**inputs(part)).logits
        losses.append(F.cross_entropy(logits.flatten(0, 1), part.target.flatten(), ignore_index=PAD, reduction="sum"))
    expected = sum(losses) / (data.target != PAD).sum()
    found = objective(Members(4), smoothing=0.0)(model.train(), data)["loss"]
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", ["dealt", "repeated"])
def test_the_mean_over_processes_is_the_loss_of_the_whole_batch(model, rows):
    data, loss = batch(), objective(Members(4, rows=rows), smoothing=0.1)
    whole = loss(model.train(), data)
    share = (data.target != PAD).sum() / 2
    parts = []
    for rank in range(2):
        mine = slice(rank, None, 2)
        parts.append(loss(model, Batch(data.source[mine], data.target[mine], torch.arange(8)[mine], 8, share)))
    assert parts[0]["tokens"] != parts[1]["tokens"]
    for name in ("loss", "nll"):
        torch.testing.assert_close((parts[0][name] + parts[1][name]) / 2, whole[name])


def test_a_repeated_batch_is_the_mean_of_the_members_losses(model):
    data = batch()
    losses = [translated(model.extract(member)(**inputs(data)).logits, data.target, 0.1)["loss"] for member in range(4)]
    found = objective(Members(4, rows="repeated"), smoothing=0.1)(model, data)["loss"]
    torch.testing.assert_close(found, torch.stack(losses).mean())


def test_log_probabilities_are_averaged_as_probabilities(model):
    data = batch()
    found = member_log_probs(model.eval(), data)
    words = [
        model.extract(member)(**inputs(data)).logits.softmax(-1).gather(-1, data.target[..., None]).squeeze(-1)
        for member in range(4)
    ]
    torch.testing.assert_close(mean_log_prob(found).exp(), torch.stack(words).mean(0).float().detach())
