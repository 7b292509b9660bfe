"""Vanilla: one network trained on one task after another, with a head for each."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from batchensemble.lab.methods.lifelong.lesson import Lesson
from batchensemble.lab.methods.lifelong.method import Network, Student
from batchensemble.lab.methods.lifelong.trunk import Trunk


@dataclass(frozen=True)
class Finetune:
    """Every task trains the whole network; nothing protects what it learned before."""

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> "OneNetwork":
        """The network, without any head yet."""
        return OneNetwork(network(torch.Generator().manual_seed(seed)), seed)


class OneNetwork(Student):
    """A trunk that all tasks train, and a head for each."""

    def __init__(self, trunk: Trunk, seed: int) -> None:
        super().__init__()
        self.trunk, self.seed = trunk, seed
        self.heads = nn.ModuleList()

    def learn(self, lesson: Lesson) -> None:
        """Train the whole network and a new head."""
        head = self.add_head(lesson)
        self.train()
        lesson.train(self, lambda x: head(self.trunk(x)), nn.ModuleList([self.trunk, head]))
        self.eval()

    def add_head(self, lesson: Lesson) -> nn.Linear:
        """Add a head for the lesson's task."""
        head = lesson.new_head(self.trunk.features, self.seed, self.trunk)
        self.heads.append(head)
        return head

    @torch.no_grad()
    def logits(self, images: Tensor, task: int) -> Tensor:
        """Apply the task's head to the network's current features."""
        answers: Tensor = self.heads[task](self.trunk(images))
        return answers
