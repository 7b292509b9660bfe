"""One answer from all members, whatever the rule, the layout and the machinery around it."""

import pytest
import torch
import torch.nn.functional as F
from member_outputs import LAYOUTS, C, M, N, highest, logits, rule_name
from torch import Tensor, nn

from batchensemble.prediction import RULES, Prediction, combine_outputs


class Combined(nn.Module):
    """A rule as a network, to be compiled and exported."""

    def __init__(self, rule, class_dim: int = -1) -> None:
        super().__init__()
        self.rule, self.class_dim = rule, class_dim

    def forward(self, outputs: Tensor) -> Tensor:
        return combine_outputs(outputs, self.rule, self.class_dim)


@pytest.mark.parametrize(("shape", "class_dim", "axis"), LAYOUTS)
def test_softmax_is_the_log_of_the_mean_probability(shape, class_dim, axis) -> None:
    outputs = logits(*shape)
    expected = outputs.softmax(axis).mean(0).log()
    torch.testing.assert_close(combine_outputs(outputs, "softmax", class_dim), expected)


@pytest.mark.parametrize(("shape", "class_dim", "axis"), LAYOUTS)
def test_vote_is_the_log_of_the_share_of_votes(shape, class_dim, axis) -> None:
    outputs = logits(*shape)
    votes = F.one_hot(outputs.argmax(axis), C).double().mean(0).movedim(-1, axis)
    answer = combine_outputs(outputs, "vote", class_dim)
    torch.testing.assert_close(answer.exp(), votes)
    assert answer.isneginf().any()


@pytest.mark.parametrize("shape", [(), (1,), (C,), (3, 2)])
def test_sigmoid_is_the_log_odds_of_the_mean_probability(shape) -> None:
    outputs = logits(*shape)
    torch.testing.assert_close(combine_outputs(outputs, "sigmoid"), outputs.sigmoid().mean(0).logit())


@pytest.mark.parametrize("shape", [(), (1,), (3, 2)])
def test_mean_and_a_rule_of_your_own(shape) -> None:
    outputs = logits(*shape)
    torch.testing.assert_close(combine_outputs(outputs, "mean"), outputs.mean(0))
    assert torch.equal(combine_outputs(outputs, highest), outputs.amax(0))


@pytest.mark.parametrize("rule", RULES)
def test_integers_are_not_rounded(rule) -> None:
    outputs = logits(C).long()
    torch.testing.assert_close(combine_outputs(outputs, rule), combine_outputs(outputs.float(), rule))


def test_extreme_logits_stay_finite() -> None:
    outputs = torch.tensor([[[0.0, 1000.0]], [[0.0, 1000.0]]])
    assert combine_outputs(outputs, "softmax").tolist() == [[-1000.0, 0.0]]
    assert combine_outputs(outputs[..., 1], "sigmoid").tolist() == [1000.0]
    assert combine_outputs(-outputs[..., 1], "sigmoid").tolist() == [-1000.0]
    masked = torch.tensor([[[0.0, 0.0, -torch.inf]], [[0.0, 0.0, -torch.inf]]])
    torch.testing.assert_close(combine_outputs(masked, "softmax").exp(), torch.tensor([[0.5, 0.5, 0.0]]))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_combined_in_float32(rule, dtype) -> None:
    outputs = logits(C, dtype=dtype)
    answer = combine_outputs(outputs, rule)
    assert answer.dtype == dtype
    torch.testing.assert_close(answer, combine_outputs(outputs.float(), rule).to(dtype), rtol=0, atol=0)


@pytest.mark.parametrize("rule", RULES)
def test_one_member_answers_alone(rule) -> None:
    outputs = logits(C, members=1)
    expected = {
        "softmax": outputs[0].log_softmax(-1),
        "sigmoid": outputs[0],
        "mean": outputs[0],
        "vote": F.one_hot(outputs[0].argmax(-1), C).double().log(),
    }
    torch.testing.assert_close(combine_outputs(outputs, rule), expected[rule])


def test_answers_can_be_trained_through() -> None:
    for rule in ("softmax", "sigmoid", "mean"):
        outputs = logits(C)[:, :2].requires_grad_()
        assert torch.autograd.gradcheck(lambda x, rule=rule: combine_outputs(x, rule), outputs)


@pytest.mark.parametrize("rule", ["softmax", "sigmoid"])
def test_answers_can_be_trained_through_where_a_class_is_masked(rule) -> None:
    outputs = logits(5, 3)
    masked = outputs.index_fill(-1, torch.tensor([0]), -torch.inf).requires_grad_()
    answer = combine_outputs(masked, rule)
    assert answer[..., 0].eq(-torch.inf).all()
    assert torch.equal(answer, combine_outputs(masked.detach(), rule))
    (gradient,) = torch.autograd.grad(answer[..., 1:].square().sum(), masked)
    alone = outputs[..., 1:].requires_grad_()
    (expected,) = torch.autograd.grad(combine_outputs(alone, rule).square().sum(), alone)
    torch.testing.assert_close(gradient[..., 1:], expected)
    assert gradient[..., 0].eq(0).all()
    mapped = torch.vmap(lambda x: combine_outputs(x, rule)[..., 1:].square().sum())  # does not say what has gradients
    torch.testing.assert_close(torch.func.grad(lambda x: mapped(x[None]).sum())(masked.detach()), gradient)
    assert combine_outputs(torch.full_like(masked, torch.nan).requires_grad_(), rule).isnan().all()


@pytest.mark.parametrize("rule", ["softmax", "vote"])
def test_classes_that_are_not_there(rule) -> None:
    for make in (combine_outputs, Prediction):
        with pytest.raises(ValueError, match=r"holds one class in a member's outputs \(7, 1\): use combine='sigmoid'"):
            make(torch.zeros(M, N, 1), rule)
        with pytest.raises(ValueError, match=r"holds the rows of one member's outputs \(7,\): .*combine='mean'"):
            make(torch.zeros(M, N), rule)
        for rows in (0, -3):
            with pytest.raises(ValueError, match=rf"class_dim={rows} holds the rows"):
                make(torch.zeros(M, N, C, 2), rule, rows)
        for missing in (2, -3):
            with pytest.raises(ValueError, match=rf"class_dim={missing} is no axis of one member's outputs"):
                make(torch.zeros(M, N, C), rule, missing)


def test_rules_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="choose one with member="):
        combine_outputs(logits(C), None)
    for make in (combine_outputs, Prediction):
        with pytest.raises(ValueError, match="'vote', a callable or None, got 'median'"):
            make(logits(C), "median")


@pytest.mark.parametrize("rule", [*RULES, highest], ids=rule_name)
def test_one_graph_with_any_number_of_rows(rule) -> None:
    outputs = logits(C, dtype=torch.float32)
    torch._dynamo.reset()
    compiled = torch.compile(Combined(rule), fullgraph=True, dynamic=True, backend="aot_eager")
    torch.testing.assert_close(compiled(outputs), combine_outputs(outputs, rule))
    rows = torch.export.Dim("rows", min=1, max=1000)
    exported = torch.export.export(Combined(rule), (outputs,), dynamic_shapes=({1: rows},)).module()
    for size in (1, 3, 7):
        expected = combine_outputs(outputs[:, :size], rule)
        torch.testing.assert_close(exported(outputs[:, :size]), expected)
        torch.testing.assert_close(compiled(outputs[:, :size]), expected)


@pytest.mark.parametrize("rule", ["softmax", "vote"])
def test_one_graph_with_classes_in_the_middle(rule) -> None:
    outputs = logits(C, 3, 2, dtype=torch.float32)
    exported = torch.export.export(
        Combined(rule, 1), (outputs,), dynamic_shapes=({1: torch.export.Dim("rows", min=1, max=1000)},)
    ).module()
    torch.testing.assert_close(exported(outputs[:, :3]), combine_outputs(outputs[:, :3], rule, 1))


@pytest.mark.parametrize("rule", RULES)
def test_onnx_with_any_number_of_rows(rule, tmp_path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    outputs = logits(C, dtype=torch.float32)
    rows = {1: torch.export.Dim("rows", min=1, max=1000)}
    path = tmp_path / "rule.onnx"
    torch.onnx.export(Combined(rule).eval(), (outputs,), path, dynamo=True, dynamic_shapes=(rows,), verbose=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for size in (1, 3, 7):
        (found,) = session.run(None, {session.get_inputs()[0].name: outputs[:, :size].numpy()})
        torch.testing.assert_close(torch.from_numpy(found), combine_outputs(outputs[:, :size], rule))


@pytest.mark.parametrize("rule", [lambda outputs: outputs.mean(1), torch.mean, lambda outputs: outputs])
def test_a_rule_of_the_users_own_answers_every_row(rule) -> None:
    outputs = logits(C)
    with pytest.raises(ValueError, match=rf"an answer for each of the {N} rows; it returned"):
        combine_outputs(outputs, rule)
    assert combine_outputs(outputs, lambda given: given.amax((0, 2))).shape == (N,)
