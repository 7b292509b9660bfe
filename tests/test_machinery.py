"""torch's own machinery around an ensemble: compile, export, autocast, copies, threads."""

import copy
import inspect
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import torch
from ensembles import IDS, M, N, convnet, ensemble, images, mlp, randomise, rows
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

import batchensemble as be

close = partial(torch.testing.assert_close, rtol=1e-3, atol=1e-4)


class Attends(nn.Module):
    """Attention, norms and a residual; answers with a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return {"logits": self.head(x.mean(1)), "features": x}


def sequences(n: int = N) -> Tensor:
    return torch.randn(n, 5, 4, generator=torch.Generator().manual_seed(1))


def answer(out: Any) -> Tensor:
    return out["logits"] if isinstance(out, dict) else out


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[..., Tensor], dict[str, Any]]] = {
    "linear": (mlp, rows, {}),
    "linear, rank 2": (mlp, rows, {"rank": 2}),
    "convolutions": (convnet, images, {}),
    "convolutions, norm per member": (convnet, images, {"norm": "member"}),
    "convolutions, late": (convnet, images, {"fan_out": "5"}),
    "attention": (Attends, sequences, {}),
    "attention, late": (Attends, sequences, {"fan_out": "blocks.1", "norm": "member"}),
}
every_case = pytest.mark.parametrize(("make", "batch", "options"), CASES.values(), ids=CASES)


# ---- compile ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def _fresh() -> Iterator[None]:
    torch.compiler.reset()  # torch counts recompilations over the whole process
    yield
    torch.compiler.reset()


def traced(model: nn.Module) -> Any:
    """One graph or an error; what a backend makes of it is torch's business."""
    return torch.compile(model, fullgraph=True, backend="eager")


@pytest.mark.usefixtures("_fresh")
@every_case
def test_one_graph_in_evaluation(make: Any, batch: Any, options: dict[str, Any]) -> None:
    model, x = ensemble(make(), **options), batch()
    compiled = traced(model)
    for keywords in ({}, {"member": IDS}, {"member": 1}):
        close(answer(compiled(x, **keywords)), answer(model(x, **keywords)))
    close(answer(torch.compile(model.members, fullgraph=True, backend="eager")(x)), answer(model.members(x)))


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize(("name", "n"), [*((name, N) for name in CASES), ("linear", 2 * M), ("convolutions", 2 * M)])
def test_one_graph_in_training(name: str, n: int) -> None:
    make, batch, options = CASES[name]
    model, x = ensemble(make(), **options).train(), batch(n)
    twin = copy.deepcopy(model)
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    answer(model(x)).square().sum().backward()
    answer(compiled(x)).square().sum().backward()
    for (name, ours), theirs in zip(twin.named_parameters(), model.parameters(), strict=True):
        close(ours.grad, theirs.grad, msg=lambda text, name=name: f"{name}: {text}")
    for name, buffer in model.named_buffers():
        close(twin.get_buffer(name), buffer)


@pytest.mark.usefixtures("_fresh")
def test_few_rows_in_one_graph() -> None:
    model, x = ensemble().train(), rows(2)
    close(traced(model)(x), model.members(x)[[0, 1], [0, 1]])  # a graph cannot warn


@pytest.mark.usefixtures("_fresh")
def test_inductor_gives_the_same_answers_and_refuses_bad_ids(monkeypatch) -> None:
    monkeypatch.setenv("CI", "true")  # where the compiler refuses an operator that has a decomposition as well
    model, x = ensemble(convnet(), norm="member"), images()
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        close(compiled(x, member=IDS), model(x, member=IDS))
        for bad in (-1, M):
            with pytest.raises(Exception, match=f"got {bad}"):
                compiled(x, member=torch.full((N,), bad))


@pytest.mark.usefixtures("_fresh")
def test_a_compiled_model_keeps_its_verbs() -> None:
    model, x = ensemble(), rows()
    compiled = traced(model)
    compiled(x)
    close(compiled.predict(x).probs, model.predict(x).probs)
    close(compiled.extract(1)(x), model(x, member=1))
    model.add_members(1, like=0)
    close(compiled(x, member=M), model(x, member=0))


# ---- export ----------------------------------------------------------------------------------------------------------


@every_case
def test_export_with_a_dynamic_batch(make: Any, batch: Any, options: dict[str, Any]) -> None:
    model = ensemble(make(), **options)
    rows_axis = {0: torch.export.Dim("n", min=2, max=64)}
    program = torch.export.export(model, (batch(4),), dynamic_shapes=(rows_axis,)).module()
    for n in (3, 9):
        close(answer(program(batch(n))), answer(model(batch(n))))


def test_export_with_ids() -> None:
    model = ensemble()
    n = torch.export.Dim("n", min=2, max=64)
    shapes = {"input": {0: n}, "member": {0: n}}
    program = torch.export.export(model, (rows(4),), {"member": IDS[:4]}, dynamic_shapes=shapes).module()
    close(program(rows(), member=IDS), model(rows(), member=IDS))
    assert not any("batchensemble" in str(node.target) for node in program.graph.nodes)  # it needs torch alone
    for bad in (-1, M):
        with pytest.raises(IndexError):
            program(rows(), member=torch.full((N,), bad))


# ---- precision and memory --------------------------------------------------------------------------------------------


@every_case
def test_autocast(make: Any, batch: Any, options: dict[str, Any]) -> None:
    model, x = ensemble(make(), **options), batch()
    expected = answer(model.members(x))
    with torch.autocast("cpu", torch.bfloat16):
        members = answer(model.members(x))
        mixed = answer(model(x, member=IDS))
    size = expected.abs().max()
    assert members.dtype == torch.bfloat16
    assert (members - expected).abs().max() < 0.05 * size
    assert (mixed - expected[IDS, torch.arange(N)]).abs().max() < 0.05 * size
    with torch.autocast("cpu", torch.bfloat16):
        answer(model.train()(x)).float().square().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.dtype == torch.float32 for p in model.parameters())


def test_autocast_recurrence() -> None:
    model, x = ensemble(nn.GRU(4, 4, batch_first=True), combine="mean"), sequences()
    with torch.autocast("cpu", torch.bfloat16):
        members = model.members(x)[0]
    assert (members - model.members(x)[0]).abs().max() < 0.05


def test_channels_last_goes_through() -> None:
    model, x = ensemble(nn.Conv2d(3, 4, 3, padding=1), class_dim=1), images()
    last = x.contiguous(memory_format=torch.channels_last)
    model.to(memory_format=torch.channels_last)
    for keywords in ({"member": 1}, {"member": IDS}):
        out = model(last, **keywords)
        assert out.is_contiguous(memory_format=torch.channels_last)
        close(out, model(x, **keywords))
    close(model.members(last), model.members(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@every_case
def test_casting(make: Any, batch: Any, options: dict[str, Any], dtype: torch.dtype) -> None:
    model = ensemble(make(), **options).to(dtype)
    assert answer(model(batch().to(dtype))).dtype == dtype
    assert answer(model(batch().to(dtype), member=IDS)).dtype == dtype


# ---- copies ----------------------------------------------------------------------------------------------------------


@every_case
def test_copies_answer_for_themselves(make: Any, batch: Any, options: dict[str, Any]) -> None:
    model, x = ensemble(make(), **options), batch()
    before, file = answer(model(x)), io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(file, weights_only=False)):
        assert torch.equal(answer(twin(x)), before)
        assert inspect.signature(twin.forward) == inspect.signature(model.forward)
        randomise(twin, seed=9)
        assert not torch.equal(answer(twin(x)), before)
    assert torch.equal(answer(model(x)), before)


def test_functional_call() -> None:
    model, x = ensemble(), rows()
    other = randomise(copy.deepcopy(model), seed=9)
    close(torch.func.functional_call(model, dict(other.named_parameters()), (x,)), other(x))


@pytest.mark.parametrize("size", [4, 24])  # few positions, and many: another plan
def test_function_transforms(size: int) -> None:
    model = ensemble(nn.Conv2d(3, 4, 3), class_dim=1).train()
    x = torch.randn(2, 2 * M, 3, size, size)
    parameters = dict(model.named_parameters())

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(model, parameters, (x,)).square().mean()

    each = torch.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    for i in range(2):
        expected = torch.autograd.grad(loss(parameters, x[i]), list(parameters.values()))
        for ours, theirs in zip(each.values(), expected, strict=True):
            close(ours[i], theirs)


def test_inference_mode() -> None:
    model, x = ensemble(convnet()), images()
    expected = model(x, member=IDS)
    with torch.inference_mode():
        close(model(x, member=IDS), expected)
        close(model(x).exp().sum(-1), torch.ones(N))


# ---- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("compiled", [False, True])
def test_threads_do_not_mix_members(compiled: bool) -> None:
    model, x = ensemble(convnet()), images()
    expected = model.members(x).detach()
    called: Any = traced(model) if compiled else model
    together = threading.Barrier(4)

    def work(which: int) -> None:
        ids = (torch.arange(N) + which) % M
        together.wait()
        for _ in range(15):
            with torch.no_grad():
                close(called(x, member=ids), expected[ids, torch.arange(N)])
                close(called(x, member=which % M), expected[which % M])

    if compiled:  # graphs first: tracing itself takes turns in torch
        with torch.no_grad():
            called(x, member=IDS)
            for i in range(M):
                called(x, member=i)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # which raises what a thread raised


def test_predictions_of_several_threads_leave_dropout_off_and_the_mode_as_it_was() -> None:
    model = be.convert(nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.5), nn.Linear(32, 3)), members=M).train()
    model.net[2].eval()
    x = torch.randn(N, 4)
    expected = model.predict(x).outputs

    def work(_: int) -> None:
        for _ in range(50):
            assert torch.equal(model.predict(x).outputs, expected)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert [module.training for module in (model, *model.net)] == [True, True, True, False]


ASKED = {
    "diagnose": lambda model, x: be.diagnose(model, [(x, torch.arange(len(x)) % 3)]),
    "verify": be.verify,
    "summary": lambda model, x: be.summary(model),
    "export_program": be.export_program,
    "export_onnx": lambda model, x: be.export_onnx(model, x, path="m.onnx"),
    "generate": be.generate,
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_what_wraps_an_ensemble_is_none(asked: Callable[..., Any]) -> None:
    model, x = ensemble(), rows(6)
    with pytest.raises(TypeError, match=r"expected an ensemble, .* got AveragedModel; its \.module is one"):
        asked(AveragedModel(model), x)
    with pytest.raises(TypeError, match=r"expected an ensemble, .* got Linear$"):
        asked(nn.Linear(4, 3), x)


def test_a_compiled_module_is_the_ensemble_it_holds() -> None:
    model = ensemble()
    assert be.summary(torch.compile(model, backend="eager")) == be.summary(model)
