"""Draws what members are for: eight of them agree where there is data, and disagree where there is none.

python docs/make_gap_picture.py            # writes docs/assets/gap.png; some seconds
"""

from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import mse_loss

import batchensemble as be
from batchensemble.lab.report.style import BLUE, DPI, INK, MUTED, ORANGE, RC, SKY

ASSETS = Path(__file__).parent / "assets"
MEMBERS, STEPS = 8, 400


def data() -> tuple[Tensor, Tensor]:
    """Points of a noisy sine, none of them between -1 and 1."""
    x = torch.cat([torch.empty(100, 1).uniform_(-3, -1), torch.empty(100, 1).uniform_(1, 3)])
    return x, torch.sin(2 * x) + 0.05 * torch.randn_like(x)


def trained(x: Tensor, y: Tensor) -> be.Ensemble:
    """An ensemble of which every member sees every row."""
    net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    curve = be.convert(net, MEMBERS, combine="mean")
    optimizer = torch.optim.Adam(be.parameter_groups(curve, lr=5e-3, weight_decay=0.0))
    for _ in range(STEPS):
        optimizer.zero_grad()
        be.mean_loss(mse_loss, curve.members(x), y).backward()
        optimizer.step()
    return curve


def drawn(curve: be.Ensemble, x: Tensor, y: Tensor) -> Figure:
    """Data, members, their mean, and two standard deviations around it."""
    grid = torch.linspace(-4, 4, 321)[:, None]
    p = curve.predict(grid)
    mean, spread, at = p.mean[:, 0], p.std[:, 0], grid[:, 0]
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    axes = figure.add_subplot()
    axes.fill_between(at, mean - 2 * spread, mean + 2 * spread, color=SKY, alpha=0.3, lw=0, label="mean ± 2 std")
    for i, member in enumerate(p.outputs[..., 0]):
        axes.plot(at, member, color=BLUE, lw=0.7, alpha=0.55, label=None if i else f"{MEMBERS} members")
    axes.plot(at, mean, color=INK, lw=1.8, label="mean")
    axes.plot(at, torch.sin(2 * at), ":", color=ORANGE, lw=1.4, label="true function")
    axes.plot(x, y, ".", color=ORANGE, ms=4, label="data", zorder=3)
    axes.axvspan(-1, 1, color=MUTED, alpha=0.08, lw=0)
    axes.text(0, -1.9, "no data", color=MUTED, ha="center", va="bottom")
    axes.set(xlim=(-4, 4), ylim=(-2, 2), xlabel="x", ylabel="y")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


if __name__ == "__main__":
    torch.manual_seed(0)
    mpl.rcParams.update(RC)
    points = data()
    drawn(trained(*points), *points).savefig(ASSETS / "gap.png", dpi=DPI, facecolor="white")
