"""The library on a GPU: the same answers as on a CPU, whichever kernels give them."""

import copy
from typing import Any

import pytest
import torch
from ensembles import M, convnet, ensemble, images, mlp, randomise, rows
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import batchensemble as be
from batchensemble.ensemble.stale import STEPS

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda")


class Tagger(nn.Module):
    """An LSTM, which folds into one call of cuDNN for each member."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, batch_first=True, bidirectional=True)
        self.head = nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(self.lstm(x)[0])
        return answer


def words(n: int = 7) -> Tensor:
    return torch.randn(n, 6, 4, generator=torch.Generator().manual_seed(1))


CASES: dict[str, Any] = {
    "mlp": (mlp, rows),
    "convolutions": (convnet, images),
    "lstm": (Tagger, words),
    "attention": (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), words),
}


@pytest.fixture(params=CASES)
def case(request: Any) -> tuple[Any, Tensor]:
    make, inputs = CASES[request.param]
    return ensemble(make()), inputs()


def test_every_member_is_its_plain_network(case: tuple[Any, Tensor]) -> None:
    model, x = case
    assert be.verify(model.to(DEVICE), x.to(DEVICE)) < 1e-3


def test_answers_are_those_of_a_cpu(case: tuple[Any, Tensor]) -> None:
    model, x = case
    there = copy.deepcopy(model).to(DEVICE)
    torch.testing.assert_close(there.members(x.to(DEVICE)).cpu(), model.members(x), rtol=1e-3, atol=1e-3)


def test_gradients_are_those_of_a_cpu(case: tuple[Any, Tensor]) -> None:
    model, x = case
    there = copy.deepcopy(model).to(DEVICE).train()
    model.train()
    for one, at in ((model, x), (there, x.to(DEVICE))):
        one(at.repeat(M, *[1] * (x.ndim - 1))).square().mean().backward()
    for (name, ours), theirs in zip(there.named_parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=1e-2, atol=1e-3, msg=name)


@pytest.mark.parametrize("norm", ["shared", "member"])
def test_half_precision_stays_near(norm: str) -> None:
    model, x = ensemble(convnet(), norm=norm).to(DEVICE), images().to(DEVICE)
    expected = model.members(x)
    with torch.autocast("cuda", torch.bfloat16):
        found = model.members(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_compiled_answers_stay_when_others_are_asked_for(mode: str | None) -> None:
    model, x = ensemble(convnet()).to(DEVICE), images(8).to(DEVICE)
    expected = [model.predict(x + shift).outputs for shift in (0, 1, 2)]
    model.compile(mode=mode)
    found = [model.predict(x + shift).outputs for shift in (0, 1, 2)]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("norm", ["shared", "member"])
@pytest.mark.parametrize(("half", "tolerance"), [(False, 0.01), (True, 0.15)], ids=["float32", "bfloat16"])
def test_a_compiled_training_step_has_the_gradients_of_an_eager_one(half: bool, tolerance: float, norm: str) -> None:
    x, y = images(12).to(DEVICE, memory_format=torch.channels_last), torch.arange(12, device=DEVICE) % 3
    eager = randomise(be.convert(convnet(), M, norm=norm)).to(DEVICE).train()
    compiled = copy.deepcopy(eager)
    compiled.compile()
    for model in (eager, compiled):
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=half):
            loss = cross_entropy(model(x), y)
        loss.backward()
    expected = {name: parameter.grad for name, parameter in eager.named_parameters()}
    largest = max(gradient.norm() for gradient in expected.values())
    for name, parameter in compiled.named_parameters():
        size = max(expected[name].norm(), 0.05 * largest)  # a member's norm leaves s before it none but rounding
        assert (parameter.grad - expected[name]).norm() < tolerance * size, name


def test_ids_are_checked_there() -> None:
    model = ensemble().to(DEVICE)
    ids = torch.tensor([0, 2, 1, 0, 1, 2, 1], device=DEVICE)
    torch.testing.assert_close(model(rows().to(DEVICE), member=ids), model.members(rows().to(DEVICE))[ids, range(7)])
    with pytest.raises(IndexError, match="member ids must lie in"):
        model(rows().to(DEVICE), member=ids + 1)


def test_rows_with_ids_in_a_graph() -> None:
    model, x = ensemble().to(DEVICE), rows().to(DEVICE)
    ids = torch.arange(7, device=DEVICE) % M
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            model(x, member=ids)
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(graph):
            answer = model(x, member=ids)
        ids.copy_(ids.flip(0))
        graph.replay()
        torch.testing.assert_close(answer, model(x, member=ids))


def test_files_do_not_know_where_a_model_was(tmp_path: Any) -> None:
    model = ensemble()
    copy.deepcopy(model).to(DEVICE).save(tmp_path / "model.safetensors")
    loaded = be.load(tmp_path / "model.safetensors", mlp()).eval()
    assert torch.equal(loaded.members(rows()), model.members(rows()))


def test_diagnose_takes_a_loader_of_the_cpu() -> None:
    model, batch = ensemble(), (rows(), torch.arange(7) % 3)
    there = be.diagnose(copy.deepcopy(model).to(DEVICE), [batch])
    assert there.nll == pytest.approx(be.diagnose(model, [batch]).nll, rel=1e-3)


def test_an_optimizer_that_is_too_old_is_noticed_after_a_move_to_the_gpu() -> None:
    model = ensemble().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model.add_members(1)(rows())  # a first call, to see whether it works
    model.to(DEVICE)
    for _ in range(STEPS):
        model(rows().to(DEVICE)).square().sum().backward()
        optimizer.step()
    with pytest.warns(UserWarning, match="the optimiser trains what members share"):
        model(rows().to(DEVICE))
