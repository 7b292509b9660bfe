"""Exports of networks whose inputs have names: numbers as from `predict`, at another batch size."""

import onnxruntime
import pytest
import torch
from torch import nn

import batchensemble as be

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # torch.onnx's own


class Tabular(nn.Module):
    """Numbers and a category; weights of rows, a scale without rows and a flag, if they are given."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.body, self.head = nn.Embedding(7, 4), nn.Linear(6, 5), nn.Linear(5, 3)

    def forward(self, num, weight=None, *, cat, doubled=False, scale=None):
        x = torch.relu(self.body(torch.cat([num, self.embedding(cat)], -1)))
        x = x if weight is None else x * weight.unsqueeze(1)
        x = x if scale is None else x * scale
        return self.head(x) * 2 if doubled else self.head(x)


class Open(Tabular):
    def forward(self, *columns, **more):
        return super().forward(columns[0] + columns[1], **more)


def ensemble(net=Tabular, **options) -> be.Ensemble:
    torch.manual_seed(0)
    return be.convert(net(), members=3, init="normal", **options)


def inputs(rows: int) -> dict[str, torch.Tensor]:
    chance = torch.Generator().manual_seed(rows)
    return {
        "cat": torch.randint(7, (rows,), generator=chance),
        "num": torch.randn(rows, 2, generator=chance),
        "scale": torch.linspace(0, 2, 5),
        "weight": torch.rand(rows, generator=chance),
    }


def assert_close(found, prediction: be.Prediction) -> None:
    wanted = (prediction.probs, prediction.entropy, prediction.mutual_information, prediction.outputs)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(torch.as_tensor(ours), theirs, rtol=1e-4, atol=1e-4)


def test_a_program_takes_keywords_in_any_order() -> None:
    model = ensemble(shared_inputs=("scale",))
    program = be.export_program(model, **inputs(4), doubled=True)
    for rows in (2, 5, 9):
        given = inputs(rows)
        assert_close(program.module()(**dict(reversed(given.items()))), model.predict(**given, doubled=True))


def test_a_program_takes_both_kinds_as_they_were_exported() -> None:
    model = ensemble()
    num, cat = inputs(4)["num"], inputs(4)["cat"]
    program = be.export_program(model, num, cat=cat, scale=None)
    num, cat = inputs(9)["num"], inputs(9)["cat"]
    assert_close(program.module()(num, cat=cat), model.predict(num, cat=cat))


def test_onnx_names_inputs_in_the_order_of_the_signature(tmp_path) -> None:
    model, path = ensemble(shared_inputs=("scale",)), tmp_path / "ensemble.onnx"
    example = inputs(4)
    num = example.pop("num")
    be.export_onnx(model, num, path=path, doubled=True, external_data=False, **example)
    session = onnxruntime.InferenceSession(path)
    assert [given.name for given in session.get_inputs()] == ["num", "weight", "cat", "scale"]
    for rows in (1, 5, 9):
        given = inputs(rows)
        found = session.run(None, {name: tensor.numpy() for name, tensor in given.items()})
        assert_close(found, model.predict(**given, doubled=True))


def test_onnx_inputs_may_be_called_otherwise_and_may_have_no_names(tmp_path) -> None:
    model, path = ensemble(Open), tmp_path / "ensemble.onnx"
    first, second, cat = inputs(4)["num"], inputs(3)["num"].repeat(2, 1)[:4], inputs(4)["cat"]
    for chosen in (None, ["left", "right", "kind"]):
        be.export_onnx(model, first, second, cat=cat, path=path, input_names=chosen)
        session = onnxruntime.InferenceSession(path)
        names = [given.name for given in session.get_inputs()]
        assert names == (chosen or ["inputs_0", "inputs_1", "cat"])
        parts = (first[:3], second[:3], cat[:3])
        found = session.run(None, {name: part.numpy() for name, part in zip(names, parts, strict=True)})
        assert_close(found, model.predict(*parts[:2], cat=parts[2]))


def test_names_for_some_inputs_only_are_refused(tmp_path) -> None:
    example = inputs(4)
    with pytest.raises(ValueError, match=r"expected input_names for \['num', 'cat'\], in this order, got \['num'\]"):
        be.export_onnx(
            ensemble(), example["num"], cat=example["cat"], path=tmp_path / "never.onnx", input_names=["num"]
        )


def test_an_input_that_is_called_like_an_option_goes_by_position(tmp_path) -> None:
    class Reporting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x, report):
            return self.layer(x * report)

    model, x, path = ensemble(Reporting), torch.randn(4, 4), tmp_path / "ensemble.onnx"
    with pytest.raises(ValueError, match=r"\['report'\] are inputs of the network and options of torch.onnx.export"):
        be.export_onnx(model, x, report=x, path=path)
    be.export_onnx(model, x, x, path=path)
    assert [given.name for given in onnxruntime.InferenceSession(path).get_inputs()] == ["x", "report"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scale": torch.ones(5)}, ValueError, r"scale of shape \(5,\) does not hold the 4 rows.*shared_inputs"),
        ({"scale": [torch.ones(4)]}, TypeError, "inputs of a graph are single tensors, and scale is list of tensors"),
        ({"member": 1}, TypeError, "members and predict ask all members"),
        ({"colour": torch.ones(4)}, TypeError, "unexpected keyword argument 'colour'"),
    ],
)
def test_what_cannot_be_exported_is_named(change, error, message) -> None:
    example = {name: inputs(4)[name] for name in ("num", "cat")}
    with pytest.raises(error, match=message):
        be.export_program(ensemble(), **example, **change)


def test_a_constant_by_position_is_named() -> None:
    example = inputs(4)
    with pytest.raises(TypeError, match="weight is NoneType: give constants by name"):
        be.export_program(ensemble(), example["num"], None, cat=example["cat"])


class Args(Tabular):
    def forward(self, num, args):
        return super().forward(num, cat=args)


def test_a_keyword_may_be_called_args() -> None:
    model, given = ensemble(Args), inputs(4)
    program = be.export_program(model, given["num"], args=given["cat"])
    other = inputs(7)
    assert_close(program.module()(other["num"], args=other["cat"]), model.predict(other["num"], other["cat"]))
    by_name = be.export_program(model, num=given["num"], args=given["cat"])
    assert_close(by_name.module()(num=other["num"], args=other["cat"]), model.predict(other["num"], other["cat"]))


class Std(Tabular):
    def forward(self, num, std):
        return super().forward(num * std, cat=torch.zeros_like(num[:, 0]).long())


def test_an_input_called_like_an_output_needs_another_name(tmp_path) -> None:
    model, given = ensemble(Std, combine="mean"), (inputs(4)["num"], torch.rand(4, 1))
    path = tmp_path / "model.onnx"
    with pytest.raises(ValueError, match=r"\['std'\] would be there twice: .*by input_names"):
        be.export_onnx(model, *given, path=path)
    with pytest.raises(ValueError, match=r"\['x'\] would be there twice"):
        be.export_onnx(model, *given, path=path, input_names=["x", "x"])
    assert not path.exists()
    be.export_onnx(model, given[0], std=given[1], path=path, input_names=["num", "scale"])
    fed = {"num": given[0].numpy(), "scale": given[1].numpy()}
    answer, *_ = onnxruntime.InferenceSession(path).run(None, fed)
    torch.testing.assert_close(torch.as_tensor(answer), model.predict(*given).mean, rtol=1e-4, atol=1e-4)
