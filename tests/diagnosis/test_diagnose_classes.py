"""Members that were each shown only some of the classes are told from an ensemble."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from ensembles import ensemble, rows
from torch import Tensor, nn

import batchensemble as be


def blobs(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Six classes around six points, in turn."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 6
    return 3 * torch.eye(6, 8)[labels] + torch.randn(n, 8, generator=generator), labels


@pytest.mark.parametrize("init", ["sign", "ones"])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_rows_sorted_by_class_are_suspected(init: str, is_sorted: bool) -> None:
    torch.manual_seed(0)
    x, y = blobs(600, seed=0)
    if is_sorted:
        x, y = x[y.argsort(stable=True)], y.sort(stable=True).values
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 6))
    model = be.convert(net, members=3, init=init).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    found = be.diagnose(model, [blobs(300, seed=1)])
    assert ("only some of the classes" in found.verdict) is is_sorted
    assert (min(found.member_accuracy) > 0.8) is not is_sorted


@pytest.mark.parametrize(
    ("accuracy", "error", "weak"), [(0.66, 0.02, True), (0.64, 0.02, False), (0.66, 0.09, False), (0.5, 0.02, False)]
)
def test_how_weak_is_far_weaker(accuracy: float, error: float, weak: bool) -> None:
    found = be.diagnose(ensemble(), [(rows(40), torch.arange(40) % 3)])
    apart = {"member_accuracy": (0.4, 0.5, 0.6), "disagreement_over_error": 0.5, "mutual_information": 0.5}
    verdict = replace(found, accuracy=accuracy, gain_error=error, **apart).verdict
    assert verdict.startswith("The members are far weaker than their ensemble (50% of these rows right, ") is weak
