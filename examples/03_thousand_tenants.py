"""One backbone, a thousand tenants: every row of a batch names its member, and every member is a small file."""

import tempfile
from pathlib import Path

import torch
from torch import nn

import batchensemble as be

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
model = be.convert(backbone, members=1000, init="ones", combine=None)  # tenants have no common answer
be.freeze_shared_(model)  # W is shared and fixed; a tenant trains only its own vectors

# Every tenant has its own target: a scale that the backbone does not know.
x, tenants = torch.randn(4096, 32), torch.randint(1000, (4096,))
scale = torch.rand(1000) * 2 - 1
y = scale[tenants, None] * x[:, :1]

own = [parameter for parameter in model.parameters() if parameter.requires_grad]
optimizer = torch.optim.Adam(own, lr=0.05)
model.train()
for step in range(300):
    rows = torch.randint(4096, (256,))
    loss = nn.functional.mse_loss(model(x[rows], member=tenants[rows]), y[rows])  # 256 rows of many tenants, one pass
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
model.eval()

with tempfile.TemporaryDirectory() as folder:
    whole, single = Path(folder, "all.safetensors"), Path(folder, "tenant-7.safetensors")
    model.save(whole)
    model.save_member(7, single)
    print(f"all {whole.stat().st_size / 1024:.0f} kB, tenant 7 alone {single.stat().st_size / 1024:.1f} kB")

    model.keep_members([0])  # a small server that takes tenants as they come
    before = model(x, member=0)
    seat = model.load_member(single)
    print(f"tenant 7 sits in seat {seat}; tenant 0 unchanged: {torch.equal(model(x, member=0), before)}")
