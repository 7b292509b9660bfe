"""The labels that diagnose takes: for sigmoids each is a question of two classes; those that do not fit are named."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from ensembles import M, ensemble, mlp, rows
from torch import nn
from transformers import BertConfig, BertForSequenceClassification
from zoo import ZOO

import batchensemble as be


@pytest.mark.parametrize("labels", [torch.long, torch.float, torch.bool])
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_label_of_a_sigmoid_is_a_question_of_two_classes(outputs: int, labels: torch.dtype) -> None:
    model, x = ensemble(mlp(outputs=outputs), combine="sigmoid"), rows(40)
    y = (torch.randn(40, outputs, generator=torch.Generator().manual_seed(2)) > 0.3).to(labels)
    found = be.diagnose(model, [(x[:30], y[:30]), (x[30:], y[30:])])
    probs, wanted = model.predict(x).member_probs.double(), y.double()
    assert (found.members, found.rows) == (M, 40 * outputs)
    assert found.accuracy == pytest.approx(((probs.mean(0) > 0.5) == wanted).double().mean().item())
    assert found.member_accuracy == pytest.approx([((p > 0.5) == wanted).double().mean().item() for p in probs])
    assert found.nll == pytest.approx(F.binary_cross_entropy(probs.mean(0), wanted).item(), rel=1e-5)
    losses = [F.binary_cross_entropy(p, wanted).item() for p in probs]
    assert found.member_nll == pytest.approx(sum(losses) / M, rel=1e-5)
    assert found.nll_gain == pytest.approx(min(losses) - found.nll, rel=1e-4)
    prediction = model.predict(x)
    for name in ("disagreement", "mutual_information", "entropy"):
        assert getattr(found, name) == pytest.approx(getattr(prediction, name).mean().item(), rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_labels_are_integers_of_any_size(dtype: torch.dtype) -> None:
    model, x, y = ensemble(mlp(outputs=7)), rows(7), torch.arange(7)  # as many as classes: a mask would fit
    assert be.diagnose(model, [(x, y.to(dtype))]) == be.diagnose(model, [(x, y)])


def test_labels_of_two_classes_may_be_true_or_false() -> None:
    model, x, y = ensemble(mlp(outputs=2)), rows(2), torch.tensor([True, False])
    assert be.diagnose(model, [(x, y)]) == be.diagnose(model, [(x, y.long())])


def test_a_byte_is_no_label_that_does_not_count() -> None:
    model, y = ensemble(mlp(outputs=200)), torch.full((5,), 156, dtype=torch.uint8)  # the byte of -100
    assert be.diagnose(model, [(rows(5), y)]).rows == 5


def test_labels_of_sigmoids_have_the_shape_of_the_answers() -> None:
    model, x = ensemble(nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), combine="sigmoid"), rows()
    y = torch.tensor([0, 1, 1, 0, 1, 0, -100])
    found = be.diagnose(model, [(x, y)])
    assert found.rows == 6, "one does not count"
    assert found == be.diagnose(model, [(x[:6], y[:6].float())])
    with pytest.raises(ValueError, match=r"labels \(7, 1\) are not one for each of the answers \(7,\)"):
        be.diagnose(model, [(x, y[:, None])])
    for wrong in (0.3, 2):
        with pytest.raises(ValueError, match=rf"labels are 0 or 1 \(-100 is left out\), got {wrong}"):
            be.diagnose(model, [(x, torch.full((7,), wrong))])
    later = be.convert(nn.Linear(4, 2), members=M, batch_dim=1, combine="sigmoid", init="ones")
    x = torch.randn(6, 5, 4)
    found = be.diagnose(later, [(x, later(x, member=0) > 0)])
    assert found.accuracy == 1, "(T, N, labels)"
    assert found.collapsed


def test_a_regression_may_answer_with_a_number_for_each_row() -> None:
    """(N,), as from a network that ends in squeeze(-1), is told as much as (N, 1)."""
    column, x = ensemble(nn.Linear(4, 1), combine="mean"), rows()
    vector = ensemble(nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), combine="mean")
    expected = be.diagnose(column, [(x, x[:, :1])])
    assert replace(be.diagnose(vector, [(x, x[:, 0])]), similarity=expected.similarity) == expected


def test_sure_members_of_sigmoids_have_finite_divergences() -> None:
    model = be.convert(nn.Linear(1, 1, bias=False), members=2, init="ones", combine="sigmoid")
    model.net.weight.data.fill_(200.0)
    model.net.s.data[1] = -1
    assert be.diagnose(model, [(torch.ones(2, 1), torch.tensor([[0], [1]]))]).pairwise_kl == pytest.approx(200)


def test_labels_in_a_dict_of_a_network_with_a_loss_of_its_own() -> None:
    config = BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, num_labels=3,
        problem_type="multi_label_classification",
    )  # fmt: skip
    model = ensemble(BertForSequenceClassification(config), combine="sigmoid")
    batch = {"input_ids": torch.randint(20, (5, 6)), "labels": torch.randint(2, (5, 3)).float()}
    assert be.diagnose(model, [batch]).member_nll == pytest.approx(model(**batch).loss.item(), rel=1e-4)


def test_what_is_no_tensor_is_named() -> None:
    with pytest.raises(TypeError, match="labels must be a tensor, got ndarray"):
        be.diagnose(ensemble(), [(rows(), np.zeros(7, dtype=int))])


def test_labels_of_another_length_are_named() -> None:
    with pytest.raises(ValueError, match=r"labels \(3,\) are not one for each of the answers \(7, 3\)"):
        be.diagnose(ensemble(), [(rows(), torch.zeros(3, dtype=torch.long))])


def test_labels_beside_the_inputs_are_one_for_each_answer() -> None:
    model = ensemble(ZOO["llama"].make())
    _, inputs = ZOO["llama"].inputs(5)
    words = model(**inputs).logits.argmax(-1)
    assert be.diagnose(model, [(inputs, words)]).accuracy == 1
