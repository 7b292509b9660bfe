"""Elastic weight consolidation (Kirkpatrick et al., 2017): springs hold back the weights that mattered."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from batchensemble.lab.methods.lifelong.finetune import OneNetwork
from batchensemble.lab.methods.lifelong.lesson import Lesson
from batchensemble.lab.methods.lifelong.method import Network
from batchensemble.lab.methods.lifelong.trunk import Trunk

Labels = Literal["sampled", "true"]
TINY = 1e-30
AT_ONCE = 16  # rows whose gradients are held in memory together


@dataclass(frozen=True)
class EWC:
    """Fine-tuning with the penalty `strength / 2 * sum_t sum_i F_t,i (w_i - w_t,i)^2` over earlier tasks t.

    F is the diagonal of the Fisher information: the mean over rows of the squared gradient of a single row's
    log-likelihood (not of a batch's), in evaluation mode. The penalty includes a factor of one half; implementations
    without it are twice as strong at the same number. A spring so stiff that gradient descent would overshoot (learning
    rate times strength times F above a half) is softened to that limit.

    Args:
        strength: strength of the springs.
        rows: rows of a task on which its Fisher information is measured.
        labels: `sampled` from the network's predictions (the Fisher information), or the `true` ones (the empirical).
    """

    strength: float = 30.0
    rows: int = 500
    labels: Labels = "sampled"

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> "Consolidated":
        """The network without springs."""
        return Consolidated(self, network(torch.Generator().manual_seed(seed)), seed)


class Consolidated(OneNetwork):
    """A network with springs.

    The penalties of all tasks form one quadratic form, so two numbers per weight are enough for all of them:
    `sum_t F_t` and `sum_t F_t w_t`.
    """

    def __init__(self, method: EWC, trunk: Trunk, seed: int) -> None:
        super().__init__(trunk, seed)
        self.method = method
        self.stiffness: list[Tensor] = []  # sum_t F_t
        self.pull: list[Tensor] = []  # sum_t F_t w_t

    def learn(self, lesson: Lesson) -> None:
        """Train against the springs, then add the task's own."""
        head = self.add_head(lesson)
        self.train()
        trained = nn.ModuleList([self.trunk, head])
        most = 0.5 / (lesson.training.lr * self.method.strength) if self.method.strength else 0.0
        held = partial(self.penalty, most) if self.stiffness else None
        lesson.train(self, lambda x: head(self.trunk(x)), trained, penalty=held)
        self.eval()
        self.remember(lesson, head)

    def penalty(self, most: float = torch.inf) -> Tensor:
        """The springs' energy up to a constant, none of them stiffer than `most`."""
        springs = zip(self.trunk.parameters(), self.stiffness, self.pull, strict=True)
        energies = []
        for weight, stiffness, pull in springs:
            rest = pull / stiffness.clamp(min=TINY)  # where the springs of all tasks together are at rest
            energies.append((stiffness.clamp(max=most) * (weight - rest).square()).sum())
        return self.method.strength / 2 * torch.stack(energies).sum()

    @torch.no_grad()
    def remember(self, lesson: Lesson, head: nn.Linear) -> None:
        """Add the springs of a task that was just learned."""
        generator = torch.Generator().manual_seed(lesson.seed_in(self.seed))
        rows = torch.randperm(len(lesson.part), generator=generator)[: self.method.rows]
        x, y = (tensor.to(head.weight.device) for tensor in lesson.part.rows(rows.tolist()))
        images = lesson.augmented(x, self.seed)
        if self.method.labels == "sampled":
            chances = head(self.trunk(images)).softmax(1).cpu()
            y = torch.multinomial(chances, 1, generator=generator).squeeze(1).to(y.device)
        with lesson.meter.counting():
            fresh = fisher(self.trunk, head, images, y)
        weights = [w.detach() for w in self.trunk.parameters()]
        zeros = [torch.zeros_like(w) for w in weights]
        self.stiffness = [f + new for f, new in zip(self.stiffness or zeros, fresh, strict=True)]
        self.pull = [p + f * w for p, f, w in zip(self.pull or zeros, fresh, weights, strict=True)]

    def numbers_remembered(self) -> int:
        """Count two numbers for every weight of the network, and the norms' statistics."""
        return sum(tensor.numel() for tensor in (*self.stiffness, *self.pull)) + super().numbers_remembered()


def fisher(trunk: Trunk, head: nn.Linear, images: Tensor, labels: Tensor) -> list[Tensor]:
    """The mean over rows of the squared gradient of a row's log-likelihood, for every trunk parameter."""
    weights = {name: w.detach() for name, w in trunk.named_parameters()}
    buffers = dict(trunk.named_buffers())

    def loss(weights: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        features = functional_call(trunk, (weights, buffers), image[None])
        return F.cross_entropy(head(features), label[None])

    per_row = vmap(grad(loss), in_dims=(None, 0, 0))
    sums = [torch.zeros_like(w) for w in weights.values()]
    for x, y in zip(images.split(AT_ONCE), labels.split(AT_ONCE), strict=True):
        for total, gradients in zip(sums, per_row(weights, x, y).values(), strict=True):
            total += gradients.square().sum(0)
    return [total / len(images) for total in sums]
