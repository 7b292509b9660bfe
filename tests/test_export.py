import shutil
import sys
from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import nn

import batchensemble as be


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.body = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.norm, self.head = nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, images):
        x = self.stem(images)
        return self.head(torch.relu(x + self.norm(self.body(x))).mean((2, 3)))


def moments(outputs: torch.Tensor) -> torch.Tensor:
    """The mean and the variance of a mixture of Gaussians, whose means and log-variances members give."""
    means, variances = outputs[..., 0], outputs[..., 1].exp()
    return torch.stack([means.mean(0), variances.mean(0) + means.var(0, correction=0)], -1)


def ensemble(**options) -> be.Ensemble:
    torch.manual_seed(0)
    model = be.convert(Residual(), members=3, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4 + 0.2)
    return model


def expected(model: be.Ensemble, x: torch.Tensor) -> list[torch.Tensor]:
    p = model.predict(x)
    if model.settings.combine is moments:
        return [p.combined, p.outputs]
    if model.settings.combine == "mean":
        return [p.mean, p.std, p.outputs]
    return [p.probs, p.entropy, p.mutual_information, p.outputs]


OPTIONS = {
    "default": {},
    "norm per member, rank 2": {"norm": "member", "rank": 2},
    "fan_out": {"fan_out": "head"},
    "mean": {"combine": "mean"},
    "moments": {"combine": moments},
    "sigmoid": {"combine": "sigmoid"},
}


@pytest.mark.filterwarnings("ignore")  # torch's own, of sizes that become constants and of jit itself
@pytest.mark.parametrize("asked", [{}, {"member": 1}], ids=str)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_trace_passes_torchs_own_check(options, asked) -> None:
    class Asked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = ensemble(**options)

        def forward(self, x):
            return self.model(x, **asked)

    model, x = Asked().eval(), torch.randn(4, 3, 5, 5)
    torch.testing.assert_close(torch.jit.trace(model, x)(x), model(x))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_program_answers_batches_of_any_size(options) -> None:
    model = ensemble(**options)
    program = be.export_program(model, torch.randn(4, 3, 6, 6))
    assert model.training
    for rows in (2, 9):
        x = torch.randn(rows, 3, 6, 6)
        for found, wanted in zip(program.module()(x), expected(model, x), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_masked_attention_answers_batches_of_any_size() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True)

        def forward(self, x, padding):
            return self.attention(x, x, x, key_padding_mask=padding)[0][:, 0]

    def inputs(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(rows, 5, 8), torch.arange(5).expand(rows, -1) > torch.arange(1, rows + 1).unsqueeze(1)

    model = be.convert(Masked(), members=3)
    program = be.export_program(model, *inputs(4))
    for x, padding in (inputs(2), inputs(9)):
        found = program.module()(x, padding)
        torch.testing.assert_close(found[-1], model.predict(x, padding).outputs, rtol=1e-4, atol=1e-5)


def test_a_layer_frozen_in_eval_stays_so() -> None:
    model = be.convert(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), members=2)
    model.net[1].eval()
    be.export_program(model, torch.randn(2, 4))
    assert [module.training for module in model.modules()] == [True, True, True, False]


# torch.onnx's own machinery: a pytree class that it deprecates itself, operators of a package that is not installed
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_onnx_answers_batches_of_any_size(options, tmp_path) -> None:
    model = ensemble(**options)
    names = be.export_onnx(model, torch.randn(4, 3, 6, 6), path=tmp_path / "ensemble.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["ensemble.onnx"]
    session = onnxruntime.InferenceSession(tmp_path / "ensemble.onnx")
    assert [output.name for output in session.get_outputs()] == list(names)
    assert [given.name for given in session.get_inputs()] == ["images"]
    for rows in (1, 9):
        x = torch.randn(rows, 3, 6, 6)
        found = session.run(None, {"images": x.numpy()})
        for ours, wanted in zip(found, expected(model, x), strict=True):
            torch.testing.assert_close(torch.from_numpy(ours), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("options", [{}, {"external_data": True}], ids=["too large", "asked for"])
def test_weights_may_travel_beside_the_graph(options, tmp_path, monkeypatch) -> None:
    if not options:
        monkeypatch.setattr("torch.onnx._internal.exporter._onnx_program._LARGE_MODEL_THRESHOLD", 0)
    path, moved, x = tmp_path / "ensemble.onnx", tmp_path / "moved", torch.randn(4, 3, 6, 6)
    moved.mkdir()
    for shift in (0.0, 0.1):  # the second replaces the first
        model = ensemble()
        model.net.head.weight.data += shift
        be.export_onnx(model, x, path=path, **options)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["ensemble.onnx", "ensemble.onnx.data", "moved"]
        for file in (path, tmp_path / "ensemble.onnx.data"):
            shutil.copy(file, moved)
        found = onnxruntime.InferenceSession(moved / "ensemble.onnx").run(None, {"images": x.numpy()})
        for ours, wanted in zip(found, expected(model, x), strict=True):
            torch.testing.assert_close(torch.from_numpy(ours), wanted, rtol=1e-4, atol=1e-4)


def test_a_folder_that_is_not_there_is_refused_before_the_export(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(torch.onnx, "export", None)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing to write ensemble\.onnx into"):
        be.export_onnx(ensemble(), torch.randn(4, 3, 6, 6), path=tmp_path / "missing" / "ensemble.onnx")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_a_full_disk_says_so_and_the_old_file_stays(tmp_path, monkeypatch) -> None:
    path, save = tmp_path / "ensemble.onnx", torch.onnx.ONNXProgram.save
    path.write_text("old")

    def to_a_full_disk(program, destination, **options) -> None:
        Path(destination).symlink_to("/dev/full")
        save(program, destination, **options)

    monkeypatch.setattr(torch.onnx.ONNXProgram, "save", to_a_full_disk)
    with pytest.raises(OSError, match=r"the disk is full; .*ensemble\.onnx is as it was before"):
        be.export_onnx(ensemble(), torch.randn(4, 3, 6, 6), path=path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("ensemble.onnx", "old")]


def test_what_has_no_common_answer_is_not_exported() -> None:
    for rule in (None, "vote"):
        with pytest.raises(ValueError, match=f"combine={rule!r} does not say what to export"):
            be.export_program(ensemble(combine=rule), torch.randn(4, 3, 6, 6))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore:# The axis name")
def test_rows_name_their_members_in_onnx(tmp_path) -> None:
    model, x, ids = ensemble(combine=None).eval(), torch.randn(4, 3, 6, 6), torch.tensor([2, 0, 0, 1])
    rows = {0: torch.export.Dim("rows")}
    inputs = {"input_names": ["images", "member"], "dynamic_shapes": {"images": rows, "member": rows}}
    torch.onnx.export(model, (x,), tmp_path / "m.onnx", kwargs={"member": ids}, dynamo=True, verbose=False, **inputs)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")

    def answered(images: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        (found,) = session.run(None, {"images": images.numpy(), "member": ids.numpy()})
        return torch.from_numpy(found)

    x, ids = torch.randn(7, 3, 6, 6), torch.tensor([1, 2, 0, 2, 2, 1, 0])
    torch.testing.assert_close(answered(x, ids), model(x, member=ids).detach(), rtol=1e-4, atol=1e-4)
    for bad in (-1, 3):
        with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="invalid index"):
            answered(x, torch.full((7,), bad))


def test_one_example_row_would_be_taken_for_fixed() -> None:
    with pytest.raises(ValueError, match="two example rows"):
        be.export_program(ensemble(), torch.randn(1, 3, 6, 6))


def test_without_onnxscript_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[onnx\]'"):
        be.export_onnx(be.convert(nn.Linear(3, 2), members=2), torch.randn(2, 3), path=tmp_path / "never.onnx")
