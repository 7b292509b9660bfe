"""Convert a trained network without losing what it knows, fine-tune it, and compare with one network."""

from collections import OrderedDict
from copy import deepcopy

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import batchensemble as be


def train(model: nn.Module, groups: list[dict], x: Tensor, y: Tensor, epochs: int) -> None:
    optimizer = torch.optim.AdamW(groups)
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
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
model = be.convert(pretrained, members=4, init="ones", fan_out="top")  # the trunk stays plain and runs once
print(f"after convert, before training: {accuracy(model.eval(), *held_out):.3f}")
be.verify(model, x[:32])

pretrained.head = nn.Linear(64, 5)  # new task, new head
model = be.convert(pretrained, members=4, init="ones", fan_out="top")
one = deepcopy(pretrained)
rows, held_out = (x[new][:300], y[new][:300] - 5), (x[new][300:], y[new][300:] - 5)
train(one, [{"params": one.parameters(), "lr": 2e-3, "weight_decay": 0.01}], *rows, epochs=30)
train(model, be.parameter_groups(model, lr=2e-3, weight_decay=0.01, fast_lr_scale=4.0), *rows, epochs=30)
print(f"fine-tuned on 5 to 9: one network {accuracy(one, *held_out):.3f}")
print(f"fine-tuned on 5 to 9: four members {accuracy(model, *held_out):.3f}")
print(be.diagnose(model, [held_out]))  # is it worth four forward passes?
plain = model.extract(0)  # one member as an ordinary network: its class, its state-dict keys
print(f"member 0 as a plain network: {accuracy(plain.eval(), *held_out):.3f}")
