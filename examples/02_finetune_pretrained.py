"""Convert a trained network without losing what it knows, and fine-tune its top."""

from collections import OrderedDict

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import batchensemble as be


def train(model: nn.Module, groups: list[dict], x: Tensor, y: Tensor, epochs: int) -> None:
    optimizer = torch.optim.AdamW(groups)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            cross_entropy(model.train()(x[rows]), y[rows]).backward()
            optimizer.step()
    model.eval()


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return (model(x).argmax(-1) == y).float().mean().item()


torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
order = torch.randperm(len(labels))
x, y = torch.tensor(images / 16, dtype=torch.float32)[order], torch.tensor(labels)[order]
known, new = y < 5, y >= 5  # trained on the digits 0 to 4, fine-tuned on 5 to 9
layers = OrderedDict(
    trunk=nn.Sequential(nn.Linear(64, 64), nn.ReLU()),
    top=nn.Sequential(nn.Linear(64, 64), nn.ReLU()),
    head=nn.Linear(64, 5),
)
pretrained = nn.Sequential(layers)
train(pretrained, [{"params": pretrained.parameters(), "lr": 2e-3}], x[known][:600], y[known][:600], epochs=10)
held_out = x[known][600:], y[known][600:]
print(f"pre-trained on 0 to 4: {accuracy(pretrained, *held_out):.3f}")

model = be.convert(pretrained, members=4, init="ones", fan_out="top").eval()  # the trunk runs once
print(f"after convert, before training: {accuracy(model, *held_out):.3f}")
be.verify(model, x[:32])

pretrained.head = nn.Linear(64, 5)  # new task, new head; members start apart, but near the pre-trained features
model = be.convert(pretrained, members=4, init="normal(0.3)", fan_out="top")
groups = be.parameter_groups(model, lr=2e-3, weight_decay=0.01, fast_lr_scale=4.0)
train(model, groups, x[new][:300], y[new][:300] - 5, epochs=10)
held_out = x[new][300:], y[new][300:] - 5
members = [accuracy(model.extract(i).eval(), *held_out) for i in range(4)]  # each as a plain network
print(f"members fine-tuned on 5 to 9: {', '.join(f'{one:.3f}' for one in members)}; mean {sum(members) / 4:.3f}")
print(f"ensemble: {accuracy(model, *held_out):.3f}")
