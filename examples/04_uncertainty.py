"""Where is the ensemble unsure? Regression with a gap in the data, and digits it was never shown."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import batchensemble as be

torch.manual_seed(0)

# Regression: no data between -1 and 1. Every member sees every row, and the loss is the mean of the members' losses.
x = torch.cat([torch.empty(100, 1).uniform_(-3, -1), torch.empty(100, 1).uniform_(1, 3)])
y = torch.sin(2 * x) + 0.05 * torch.randn_like(x)
net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
curve = be.convert(net, members=8, combine="mean")
optimizer = torch.optim.Adam(be.parameter_groups(curve, lr=5e-3, weight_decay=0.0))
for _ in range(400):
    loss = be.mean_loss(mse_loss, curve.members(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for name, points in {
    "data": x,
    "gap": torch.linspace(-0.8, 0.8, 50)[:, None],
    "far": torch.tensor([[6.0]]),
}.items():
    print(f"{name:5} spread of the members {curve.predict(points).std.mean():.3f}")

# Classification: trained on the digits 0 to 7, tested on 8 and 9 too.
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
known = y < 8
model = be.convert(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)), members=4)
optimizer = torch.optim.SGD(be.parameter_groups(model, lr=0.1, weight_decay=1e-4), momentum=0.9)
for _ in range(15):
    for rows in torch.nonzero(known)[:, 0][torch.randperm(int(known.sum()))].split(64):
        optimizer.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
for name, rows in {"known": known, "never seen": ~known}.items():
    p = model.predict(x[rows])
    print(
        f"{name:10} entropy {p.entropy.mean():.3f} = members' own {p.expected_entropy.mean():.3f}"
        f" + between them {p.mutual_information.mean():.3f}; disagreement {p.disagreement.mean():.3f}"
    )
