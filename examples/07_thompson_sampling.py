"""Thompson sampling with members: late rewards, and a restart in the middle."""

import tempfile

import torch
from torch import nn

import batchensemble as be

torch.manual_seed(0)
better = torch.randn(4, 6)  # unknown to the sampler: arm j is worth better[j] . context


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4))


def sampler_in(folder: str) -> be.bandits.ThompsonSampler:
    training = be.bandits.Training(every=100, steps=60)
    return be.bandits.ThompsonSampler(network(), members=8, training=training, folder=folder)


with tempfile.TemporaryDirectory() as folder:
    sampler = sampler_in(folder)
    waiting = []  # decisions whose rewards have not arrived yet
    for day in range(15):
        contexts = torch.randn(60, 6)
        values = contexts @ better.T
        made = sampler.act(contexts)  # one pass; every row draws its own member
        got = values.gather(1, made.arms[:, None])[:, 0]
        waiting.append((made.ids, got + 0.1 * torch.randn(60)))
        if len(waiting) > 2:  # rewards arrive two days later
            sampler.update(*waiting.pop(0))
        if day == 7:  # the machine dies, and another process takes over
            sampler.close()
            sampler = sampler_in(folder)
            print(f"restarted with {sampler.observed} rewards, {sampler.awaiting} decisions still open")
        if day % 3 == 2:
            lost = (values.max(1).values - got).mean()
            unsure = sampler.predict(contexts).std.mean()
            print(f"day {day + 1:2}: lost per decision {lost:.2f}, members differ by {unsure:.2f}")
    sampler.close()
