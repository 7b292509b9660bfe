"""One backbone, a thousand tenants: every row of a batch names its member, and every member is a small file."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import mse_loss

import batchensemble as be

torch.manual_seed(0)
# Tenants share a function, but each has a scale and an offset of its own. 32 rows of each to train on, 32 held out.
x, tenants = torch.randn(2, 32_000, 32), torch.arange(1000).repeat(32)
scale, offset = torch.empty(1000).uniform_(0.2, 1.8), 0.5 * torch.randn(1000)
y = scale[tenants] * torch.tanh(x @ torch.randn(32, 4) / 32**0.5).sum(-1) + offset[tenants]
(x, x_held_out), (y, y_held_out) = x, (y + 0.1 * torch.randn(2, 32_000))[..., None]

# First the backbone, on everybody's rows.
backbone = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(backbone.parameters(), lr=2e-3)
for _ in range(400):
    rows = torch.randint(32_000, (256,))
    optimizer.zero_grad()
    mse_loss(backbone(x[rows]), y[rows]).backward()
    optimizer.step()
with torch.no_grad():
    print(f"held-out error, one network for all: {mse_loss(backbone(x_held_out), y_held_out):.3f}")

# Then the tenants: W is shared and fixed, each trains only its own vectors and biases.
model = be.convert(backbone, members=1000, init="ones", combine=None).train()  # tenants have no common answer
be.freeze_shared_(model)
optimizer = torch.optim.Adam((one for one in model.parameters() if one.requires_grad), lr=3e-3)
for _ in range(600):
    rows = torch.randint(32_000, (512,))  # rows of many tenants, one pass
    optimizer.zero_grad()
    mse_loss(model(x[rows], member=tenants[rows]), y[rows]).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print(f"held-out error, a member for each:   {mse_loss(model(x_held_out, member=tenants), y_held_out):.3f}")

with tempfile.TemporaryDirectory() as folder:
    whole, single = Path(folder, "all.safetensors"), Path(folder, "tenant-7.safetensors")
    model.save(whole)
    model.save_member(7, single)
    print(f"all {whole.stat().st_size / 1024:.0f} kB, tenant 7 alone {single.stat().st_size / 1024:.1f} kB")

    model.keep_members([0])  # a small server that takes tenants as they come
    before = model(x[:64], member=0)
    number = model.load_member(single)
    print(f"tenant 7 is member {number} now; tenant 0 unchanged: {torch.equal(model(x[:64], member=0), before)}")
