"""A separate network for every task: nothing is forgotten, nothing is shared, and it costs the most."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from batchensemble.lab.methods.lifelong.lesson import Lesson
from batchensemble.lab.methods.lifelong.method import Network, Student


@dataclass(frozen=True)
class Separate:
    """The upper bound on how well a task can be learned by itself."""

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> "ManyNetworks":
        """Start without any network."""
        return ManyNetworks(network, seed)


class ManyNetworks(Student):
    """A trunk and a head per task."""

    def __init__(self, network: Network, seed: int) -> None:
        super().__init__()
        self.network, self.seed = network, seed
        self.nets = nn.ModuleList()

    def learn(self, lesson: Lesson) -> None:
        """Train a new network."""
        trunk = self.network(torch.Generator().manual_seed(lesson.seed_in(self.seed)))
        head = lesson.new_head(trunk.features, self.seed, trunk)
        net = nn.Sequential(trunk, head).train()
        lesson.train(net, net, net)
        self.nets.append(net.eval())

    @torch.no_grad()
    def logits(self, images: Tensor, task: int) -> Tensor:
        """The logits of the task's network."""
        answers: Tensor = self.nets[task](images)
        return answers
