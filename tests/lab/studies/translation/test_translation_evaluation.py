"""Perplexity: per token, without smoothing, from averaged probabilities."""

import math

import pytest
import torch
import torch.nn.functional as F

import batchensemble as be
from batchensemble.lab.data.text import PAD
from batchensemble.lab.models.transformer import SELF_ATTENTION, transformer
from batchensemble.lab.studies.translation.corpora import load_text
from batchensemble.lab.studies.translation.evaluation import Evaluator
from batchensemble.lab.training.devices import start_fabric


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return load_text("toy", None, tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def net(data):
    return transformer(len(data.vocabulary), "toy", longest=64, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def evaluator(data):
    return Evaluator(data.valid, start_fabric("cpu"), tokens=700)


def alone(net, data):
    """Log-probabilities of all words said, sentence by sentence, without padding."""
    found = []
    for source, target in zip(data.valid.text("source"), data.valid.text("target"), strict=True):
        one, other = (torch.tensor([data.vocabulary.encode([text])[0]]) for text in (source, target))
        with torch.no_grad():
            logits = net.eval()(input_ids=one, decoder_input_ids=F.pad(other[:, :-1], (1, 0), value=PAD)).logits
        found.append(logits.log_softmax(-1)[0].gather(1, other.T).squeeze(1))
    return torch.cat(found).double()


def test_one_network(net, data, evaluator):
    expected = alone(net, data)
    found = evaluator.likelihood(net.train())
    assert found.nll == pytest.approx(-expected.mean().item(), rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(found.nll))
    assert found.tokens == len(expected) == data.valid.target.lengths.sum()
    assert net.training, "left as it was"


def test_members_probabilities_are_averaged_word_by_word(net, data, evaluator):
    model = be.convert(net, 3, include=SELF_ATTENTION, init="normal", generator=torch.Generator().manual_seed(1))
    members = torch.stack([alone(model.extract(i), data) for i in range(3)])
    found = evaluator.likelihood(model)
    assert found.nll == pytest.approx(-members.exp().mean(0).log().mean().item(), rel=1e-5)
    assert found.member_nll == pytest.approx((-members.mean(1)).tolist(), rel=1e-5)
    assert found.nll < sum(found.member_nll) / 3


def test_dropout_samples(net, evaluator):
    still = evaluator.likelihood(net.eval())
    assert evaluator.dropout_likelihood(net, 0.0, samples=2, seed=0).nll == pytest.approx(still.nll, rel=1e-6)
    torch.manual_seed(4)
    expected = torch.rand(1)
    torch.manual_seed(4)
    one, same, other = (evaluator.dropout_likelihood(net, 0.2, 3, seed) for seed in (0, 0, 1))
    assert torch.equal(torch.rand(1), expected)
    assert one == same != other
    assert len(one.member_nll) == 3
    assert len(set(one.member_nll)) == 3
    assert not net.training


def test_the_best_rate_comes_first(net, evaluator):
    found = evaluator.best_dropout(net, (0.3, 0.1, 0.2), samples=2, seed=0)
    assert sorted(found) == [0.1, 0.2, 0.3]
    nlls = [likelihood.nll for likelihood in found.values()]
    assert nlls == sorted(nlls)
