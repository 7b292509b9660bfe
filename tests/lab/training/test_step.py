"""One step: the same numbers whether it is taken or replayed, whatever the batch's shape."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from batchensemble.lab.training.devices import start_fabric
from batchensemble.lab.training.optimizers import adam
from batchensemble.lab.training.step import MOST_SHAPES, Replayed, Step, shapes_of


def loss(model, batch):
    x, y = batch
    return {"loss": F.cross_entropy(model(x), y)}


def made(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
    optimizer = adam([{"params": list(model.parameters()), "lr": 0.01}], torch.device(device))
    return model, optimizer


def batches(device, rows=(8, 8, 8, 16, 8, 16, 4, 16, 8, 4, 4)):
    generator = torch.Generator().manual_seed(1)
    for count in rows:
        x = torch.randn(count, 6, generator=generator)
        yield x.to(device), (x[:, 0] > 0).long().to(device)


def test_a_step_is_what_one_would_write():
    model, optimizer = made("cpu")
    step = Step(start_fabric("cpu"), model, loss, optimizer)
    found = [float(step(batch)["loss"]) for batch in batches("cpu")]
    plain, _ = made("cpu")
    reference = torch.optim.Adam(plain.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9)
    expected = []
    for batch in batches("cpu"):
        reference.zero_grad()
        value = loss(plain, batch)["loss"]
        value.backward()
        reference.step()
        expected.append(value.item())
    assert found == pytest.approx(expected)


def test_shapes_of_a_batch():
    assert shapes_of((torch.ones(2, 3), {"n": 4, "y": torch.ones(5)})) == ((2, 3), (5,))


@pytest.mark.gpu
def test_replayed_steps_of_several_shapes_are_the_steps_taken():
    fabric, found = start_fabric("cuda"), {}
    for name in ("taken", "replayed"):
        model, optimizer = made("cuda")
        step = Step(fabric, model, loss, optimizer, compiled=False)
        take = Replayed(step) if name == "replayed" else step
        found[name] = [float(take(batch)["loss"]) for batch in batches("cuda")]
    assert found["replayed"] == pytest.approx(found["taken"], rel=1e-5)


@pytest.mark.gpu
def test_too_many_shapes_are_refused():
    model, optimizer = made("cuda")
    step = Replayed(Step(start_fabric("cuda"), model, loss, optimizer, compiled=False))
    with pytest.raises(ValueError, match=f"more than {MOST_SHAPES} shapes"):
        list(map(step, batches("cuda", range(1, 30))))
