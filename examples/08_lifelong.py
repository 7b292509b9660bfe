"""Ten tasks one after another in one small network: nothing is forgotten, and a task is a file of a few kilobytes."""

import tempfile
from pathlib import Path

import torch
from torch import nn

from batchensemble.lifelong import Learner, Training


def task(number: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures of three patterns; every task has patterns of its own."""
    patterns = torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(number))
    generator = torch.Generator().manual_seed(rows)
    labels = torch.randint(3, (rows,), generator=generator)
    return patterns[labels] + 1.5 * torch.randn(rows, 1, 8, 8, generator=generator), labels


torch.manual_seed(0)
backbone = nn.Sequential(
    *(nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU()),
    *(nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten()),
)
training = Training(epochs=8, batch_size=32, lr=0.05)

with tempfile.TemporaryDirectory() as folder:
    # With a folder, a script that is killed and restarted continues where it was.
    learner = Learner(backbone, head=512, training=training, folder=folder)
    for number in range(10):
        if str(number) not in learner.tasks:
            learner.learn(task(number, 256), number)
        if number == 0:
            first = learner(task(0, 100)[0], task=0)

    for number in (0, 4, 9):
        x, y = task(number, 500)
        print(f"task {number}: accuracy {(learner.predict(x, task=number).label == y).float().mean():.1%}")
    same = torch.equal(learner(task(0, 100)[0], task=0), first)
    print(f"task 0 answers bit for bit as it did nine tasks ago: {same}")

    x = torch.cat([task(number, 2)[0] for number in range(10)])
    ids = torch.arange(10).repeat_interleave(2)
    print(f"rows of ten tasks in one batch: {tuple(learner.predict(x, task=ids).probs.shape)}")

    sizes = {path.name: path.stat().st_size / 1024 for path in sorted(Path(folder).glob("*.safetensors"))}
    print(f"shared weights {sizes['shared.safetensors']:.0f} kB, a task {sizes['task-9.safetensors']:.0f} kB")
