"""EWC's Fisher information against one row at a time, and its springs against the definition."""

import torch
import torch.nn.functional as F
from torch import nn

from batchensemble.lab.methods.lifelong import EWC, Lesson, Trunk
from batchensemble.lab.methods.lifelong.ewc import fisher
from batchensemble.lifelong import Training
from batchensemble.lifelong.data import Part


def trunk() -> Trunk:
    torch.manual_seed(0)
    block = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 5))
    return Trunk([block], (5,)).double().eval()


def test_fisher_is_the_mean_of_single_rows_squared_gradients() -> None:
    net, head = trunk(), nn.Linear(5, 3).double()
    x, y = torch.randn(20, 1, 5, 5, dtype=torch.float64), torch.arange(20) % 3
    expected = [torch.zeros_like(p) for p in net.parameters()]
    for row, label in zip(x, y, strict=True):
        gradients = torch.autograd.grad(F.cross_entropy(head(net(row[None])), label[None]), list(net.parameters()))
        expected = [total + g.square() / 20 for total, g in zip(expected, gradients, strict=True)]
    with torch.no_grad():
        found = fisher(net, head, x, y)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-14)


def test_the_penalty_of_all_tasks_is_one_quadratic_form() -> None:
    student = EWC(strength=3.0).begin(lambda generator: trunk(), 0)
    parameters = list(student.trunk.parameters())
    generator = torch.Generator().manual_seed(1)
    anchors = [[torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in parameters] for _ in range(2)]
    fishers = [[torch.rand(p.shape, generator=generator, dtype=torch.float64) for p in parameters] for _ in range(2)]
    student.stiffness = [a + b for a, b in zip(*fishers, strict=True)]
    student.pull = [f * w + g * v for f, w, g, v in zip(fishers[0], anchors[0], fishers[1], anchors[1], strict=True)]
    springs = sum(
        1.5 * (f * (p - w).square()).sum()
        for task in range(2)
        for p, f, w in zip(parameters, fishers[task], anchors[task], strict=True)
    )
    mine = torch.autograd.grad(student.penalty(), parameters)
    theirs = torch.autograd.grad(springs, parameters)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b)


def test_stiff_springs_hold_the_network_where_it_was() -> None:
    x = torch.randn(32, 1, 5, 5, generator=torch.Generator().manual_seed(0))
    y = torch.arange(32) % 2
    moved = {}
    for strength in (0.0, 1000.0):
        student = EWC(strength=strength, rows=32, labels="true").begin(lambda generator: trunk().float(), 0)
        student.learn(Lesson(0, Part.of("0", (x, y)), Training(epochs=15, batch_size=16, lr=0.01)))
        before = student.trunk.blocks[0][4].weight.detach().clone()
        student.learn(Lesson(1, Part.of("1", (-x, 1 - y)), Training(epochs=15, batch_size=16, lr=0.01)))
        moved[strength] = float((student.trunk.blocks[0][4].weight.detach() - before).norm())
    assert moved[1000.0] < 0.7 * moved[0.0]
