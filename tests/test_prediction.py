"""The uncertainties of an answer, against torch's distributions and loops over pairs."""

import copy
import pickle
from itertools import combinations

import pytest
import torch
import torch.nn.functional as F
from member_outputs import LAYOUTS, C, N, highest, logits, rule_name
from torch import Tensor
from torch.distributions import Bernoulli, Categorical

from batchensemble.prediction import Prediction


@pytest.mark.parametrize(("shape", "class_dim", "axis"), LAYOUTS)
def test_uncertainty_over_classes(shape, class_dim, axis) -> None:
    outputs = logits(*shape)
    found = Prediction(outputs, "softmax", class_dim)
    probs = outputs.movedim(axis, -1).softmax(-1)  # (members, N, positions, classes)
    mean = probs.mean(0)
    torch.testing.assert_close(found.member_probs.movedim(axis, -1), probs)
    torch.testing.assert_close(found.probs.movedim(axis, -1), mean)
    torch.testing.assert_close(found.combined, found.probs.log())
    assert torch.equal(found.label, mean.argmax(-1))
    assert torch.equal(found.member_labels, probs.argmax(-1))
    torch.testing.assert_close(found.confidence, mean.amax(-1))
    torch.testing.assert_close(found.entropy, Categorical(mean).entropy())
    torch.testing.assert_close(found.expected_entropy, Categorical(probs).entropy().mean(0))
    torch.testing.assert_close(found.mutual_information, found.entropy - found.expected_entropy)
    assert (found.mutual_information > 0).all()
    torch.testing.assert_close(found.disagreement, pairs(probs.argmax(-1)))


@pytest.mark.parametrize("shape", [(), (1,), (C,), (3, 2)])
def test_uncertainty_of_labels_that_are_set_or_not(shape) -> None:
    outputs = logits(*shape)
    found = Prediction(outputs, "sigmoid")
    mean = outputs.sigmoid().mean(0)
    torch.testing.assert_close(found.member_probs, outputs.sigmoid())
    torch.testing.assert_close(found.probs, mean)
    torch.testing.assert_close(found.combined.sigmoid(), mean)
    assert torch.equal(found.label, (mean > 0.5).long())
    assert Prediction(torch.zeros(2, 1), "sigmoid").label.item() == 0  # a half is no yes
    assert torch.equal(found.member_labels, (outputs > 0).long())
    torch.testing.assert_close(found.confidence, torch.maximum(mean, 1 - mean))
    torch.testing.assert_close(found.entropy, Bernoulli(mean).entropy())
    torch.testing.assert_close(found.expected_entropy, Bernoulli(logits=outputs).entropy().mean(0))
    torch.testing.assert_close(found.mutual_information, found.entropy - found.expected_entropy)
    torch.testing.assert_close(found.disagreement, pairs(outputs > 0))


def test_votes() -> None:
    outputs = logits(C)
    found = Prediction(outputs, "vote")
    share = F.one_hot(outputs.argmax(-1), C).double().mean(0)
    torch.testing.assert_close(found.probs, share)
    torch.testing.assert_close(found.member_probs, outputs.softmax(-1))
    assert torch.equal(found.label, share.argmax(-1))
    torch.testing.assert_close(found.confidence, share.amax(-1))
    torch.testing.assert_close(found.entropy, Categorical(share).entropy(), atol=1e-6, rtol=0)
    torch.testing.assert_close(found.disagreement, pairs(outputs.argmax(-1)))


def test_regression() -> None:
    outputs = logits(2)
    found = Prediction(outputs, "mean")
    torch.testing.assert_close(found.mean, outputs.mean(0))
    torch.testing.assert_close(found.std, (outputs - outputs.mean(0)).square().mean(0).sqrt())


def pairs(labels: Tensor) -> Tensor:
    return torch.stack([a != b for a, b in combinations(labels, 2)]).double().mean(0)


def test_members_that_agree_and_one_that_is_alone() -> None:
    alone = logits(C, members=1)
    for outputs in (alone, alone.expand(4, -1, -1)):
        for rule in ("softmax", "sigmoid"):
            found = Prediction(outputs, rule)
            assert found.disagreement.eq(0).all()
            assert found.mutual_information.ge(0).all()
            torch.testing.assert_close(found.mutual_information, torch.zeros_like(found.entropy))
        assert Prediction(outputs, "mean").std.abs().max() < 1e-12
    assert Prediction(torch.tensor([[[5.0, 0.0]], [[0.0, 5.0]]])).disagreement.tolist() == [1.0]


def test_members_choose_by_their_outputs_where_probabilities_are_rounded_to_equal_ones() -> None:
    found = Prediction(torch.tensor([[[0.0, 1e-9]], [[0.0, 1e-9]]]))
    assert found.member_probs.eq(0.5).all()
    assert found.member_labels.tolist() == [[1], [1]]


def test_rounding_makes_no_information_negative() -> None:
    found = Prediction(logits(20, members=1, dtype=torch.float32).expand(3, -1, -1))
    assert (found.entropy - found.expected_entropy).min() < 0  # rounding errs to both sides
    assert found.mutual_information.min() == 0


def test_certainty_is_zero_entropy_not_nan() -> None:
    outputs = torch.tensor([[[1000.0, 0.0]], [[1000.0, 0.0]]])
    for rule in ("softmax", "vote"):
        assert Prediction(outputs, rule).entropy.tolist() == [0.0]
    assert Prediction(outputs).expected_entropy.tolist() == [0.0]
    assert Prediction(outputs[..., 0], "sigmoid").entropy.tolist() == [0.0]


@pytest.mark.parametrize("rule", ["softmax", "sigmoid"])
@pytest.mark.parametrize("of", ["entropy", "expected_entropy", "mutual_information"])
def test_gradients_of_uncertainty_where_a_member_is_certain(rule, of) -> None:
    outputs = torch.tensor([[[1000.0, -1000.0, 0.0], [1.0, 2.0, -1.0]], [[-1000.0, 1000.0, 0.0], [0.0, 2.0, 1.0]]])
    outputs = outputs.double().requires_grad_()
    (gradient,) = torch.autograd.grad(getattr(Prediction(outputs, rule), of).sum(), outputs)
    assert gradient[:, 0, :2].eq(0).all()
    usual = outputs.detach()[:, 1:].requires_grad_()
    assert torch.autograd.gradcheck(lambda given: getattr(Prediction(given, rule), of), usual)
    (alone,) = torch.autograd.grad(getattr(Prediction(usual, rule), of).sum(), usual)
    torch.testing.assert_close(gradient[:, 1:], alone)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_outputs_stay_and_the_rest_is_float32(dtype) -> None:
    outputs = logits(C, dtype=dtype)
    found, wide = Prediction(outputs), Prediction(outputs.float())
    assert found.outputs is outputs
    for name in (
        "probs",
        "member_probs",
        "entropy",
        "mutual_information",
        "disagreement",
        "confidence",
        "combined",
    ):
        assert getattr(found, name).dtype == torch.float32
        assert torch.equal(getattr(found, name), getattr(wide, name))
    assert Prediction(outputs, "mean").std.dtype == torch.float32
    assert Prediction(outputs.double()).probs.dtype == torch.float64


OF_CLASSES = ("member_probs", "probs", "member_labels", "label", "confidence", "entropy", "disagreement")
OF_LOGITS = ("expected_entropy", "mutual_information")


@pytest.mark.parametrize(
    ("combine", "names", "why"),
    [
        ("mean", OF_CLASSES + OF_LOGITS, "since a regression has no classes"),
        ("vote", OF_LOGITS, "since a vote does not say how sure the voter was"),
        (highest, (*OF_CLASSES, *OF_LOGITS, "mean", "std"), "does not say what the outputs are"),
        (None, (*OF_CLASSES, *OF_LOGITS, "mean", "std"), "since these members share no answer"),
        ("softmax", ("mean", "std"), "whose outputs are logits"),
        ("sigmoid", ("mean", "std"), "whose outputs are logits"),
    ],
    ids=rule_name,
)
def test_what_a_rule_leaves_undefined_says_so(combine, names, why) -> None:
    found = Prediction(logits(C), combine)
    for name in names:
        with pytest.raises(AttributeError, match=rf"no {name} with combine=.*{why}: it needs combine='"):
            getattr(found, name)
        assert not hasattr(found, name)
    if combine is None:
        with pytest.raises(ValueError, match="member="):
            found.combined  # noqa: B018
    else:
        assert found.combined.shape == (N, C)


# ---- a value ------------------------------------------------------------------------------------------


def test_a_prediction_is_a_value_computed_once() -> None:
    found = Prediction(logits(C))
    assert found.probs is found.probs
    with pytest.raises(AttributeError, match="cannot assign"):
        found.outputs = logits(C)
    assert len(found) == N
    for twin in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert torch.equal(twin.mutual_information, found.mutual_information)


def test_batches_join() -> None:
    outputs = logits(C, 3)
    parts = [Prediction(part, "softmax", 1) for part in outputs.split([3, 3, 1], dim=1)]
    joined = Prediction.cat(part for part in parts)
    assert torch.equal(joined.outputs, outputs)
    assert (joined.combine, joined.class_dim, len(joined)) == ("softmax", 1, N)
    torch.testing.assert_close(joined.entropy, torch.cat([part.entropy for part in parts]))


def test_batches_that_do_not_belong_together() -> None:
    first = Prediction(logits(C))
    with pytest.raises(ValueError, match="at least one prediction"):
        Prediction.cat([])
    with pytest.raises(ValueError, match="combined differently"):
        Prediction.cat([Prediction(logits(C, C), class_dim=1), Prediction(logits(C, C), class_dim=2)])
    with pytest.raises(ValueError, match="combined differently"):
        Prediction.cat([first, Prediction(logits(C), "vote")])
    for other in (logits(C, members=3), logits(C + 1)):
        with pytest.raises(ValueError, match=r"all axes but the rows, got \(5, 7, 4\) and"):
            Prediction.cat([first, Prediction(other)])


def test_repr_is_one_short_line() -> None:
    found = Prediction(logits(C))
    expected = f"mutual_information={found.mutual_information.mean():.3g}"
    assert repr(found).startswith("Prediction((5, 7, 4), 'softmax', entropy=")
    assert expected in repr(found)
    assert "std=" in repr(Prediction(logits(C), "mean"))
    assert "disagreement=" in repr(Prediction(logits(C), "vote"))
    assert repr(Prediction(logits(C), None)) == "Prediction((5, 7, 4), None)"
    assert "highest" in repr(Prediction(logits(C), highest))
    assert repr(Prediction(torch.zeros(2, 0, 3))) == "Prediction((2, 0, 3), 'softmax')"


def test_outputs_that_are_none() -> None:
    with pytest.raises(TypeError, match=r"floating-point outputs, got torch\.int64"):
        Prediction(torch.zeros(2, 3, 4, dtype=torch.int64))
    for bad in (torch.zeros(3), torch.zeros(0, 3, 2)):
        with pytest.raises(ValueError, match=r"shape \(members, N, ...\), got"):
            Prediction(bad)


def test_a_thousand_members_disagree_without_a_million_pairs() -> None:
    outputs = logits(C, members=1000)
    votes = F.one_hot(outputs.argmax(-1), C).double().sum(0)
    expected = 1 - (votes * (votes - 1)).sum(-1) / (1000 * 999)
    torch.testing.assert_close(Prediction(outputs).disagreement, expected)


@pytest.mark.parametrize(("shape", "combine"), [((C,), "softmax"), ((), "sigmoid"), ((2, C), "vote"), ((1,), "mean")])
@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        (slice(3), [0, 1, 2]),
        (slice(None, None, 3), [0, 3, 6]),
        (2, [2]),
        (-1, [6]),
        (torch.tensor(4), [4]),
        ([5, 1], [5, 1]),
        (torch.arange(N) > 4, [5, 6]),
        (slice(0), []),
    ],
    ids=str,
)
def test_some_of_the_rows(shape, combine, rows, chosen: list[int]) -> None:
    found = Prediction(logits(*shape), combine)
    some = found[rows]
    assert torch.equal(some.outputs, found.outputs[:, chosen])
    torch.testing.assert_close(some.combined, found.combined[chosen])
    assert (len(some), some.combine, some.class_dim) == (len(chosen), combine, -1)


def test_rows_one_by_one_and_rows_that_are_not_there() -> None:
    found = Prediction(logits(C))
    assert torch.equal(Prediction.cat(list(found)).outputs, found.outputs)
    for wrong in (N, (slice(None), 0), torch.ones(N, C) > 0):
        with pytest.raises(IndexError):
            found[wrong]


def test_another_device_or_precision() -> None:
    found = Prediction(logits(C), "mean")
    assert found.to("meta").mean.device.type == "meta"
    assert found.to(torch.float64).std.dtype == torch.float64
    with pytest.raises(TypeError, match="expected floating-point outputs"):
        found.to(torch.int64)
