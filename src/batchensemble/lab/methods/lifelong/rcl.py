"""Reinforced continual learning (Xu & Zhu, 2018): a controller finds out how many units a task needs."""

import copy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from batchensemble.lab.methods.lifelong.controller import Controller
from batchensemble.lab.methods.lifelong.growing import Growing, Stamped, hold
from batchensemble.lab.methods.lifelong.lesson import Lesson
from batchensemble.lab.methods.lifelong.method import Network
from batchensemble.lifelong.data import Part

HELD_OUT = 0.2  # share of a task's rows on which rewards are measured


@dataclass(frozen=True)
class RCL:
    """Every later task takes trials: the controller chooses how many units each layer gains, and these are trained.

    A trial's reward is its accuracy on held-out rows minus `price` times the units added; the best trial is kept, and
    what earlier tasks learned is frozen. Our own decisions: choices are evenly spaced shares of a layer's initial
    width, up to `most`, instead of 0 to 29 units (a convolution of LeNet has six); a fifth of the rows is held out of
    trials.

    Args:
        trials: trials per task.
        epochs: epochs per trial; by default as many as in a training of the other methods.
        price: price of one unit.
        choices: number of options the controller has for a layer.
        most: most units that can be added to a layer, as a share of its initial width.
    """

    trials: int = 50
    epochs: int | None = None
    price: float = 1e-4
    choices: int = 30
    most: float = 0.25

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> "Reinforced":
        """The network at its initial widths, with an untrained controller."""
        generator = torch.Generator().manual_seed(seed)
        return Reinforced(self, Growing(network(generator), generator), seed)


class Trial(nn.Module):
    """A network with new units and a head."""

    def __init__(self, net: Growing, head: nn.Linear) -> None:
        super().__init__()
        self.net, self.head = net, head

    def forward(self, x: Tensor) -> Tensor:
        """The logits of the newest task."""
        answers: Tensor = self.head(self.net(x, self.net.widths))
        return answers


class Reinforced(Stamped):
    """A network that grows as far as its controller found worthwhile."""

    def __init__(self, method: RCL, net: Growing, seed: int) -> None:
        super().__init__(net, seed)
        self.method = method
        self.controller = Controller(len(net.layers), method.choices, seed)

    def learn(self, lesson: Lesson) -> None:
        """Train the network on the first task; for later ones, tries out how far it should grow."""
        if not self.stamps:
            self._accept(self._trained(lesson, self.net, "first", lesson.part, known=False))
            return
        taught, held_out = split(lesson.part, HELD_OUT)
        best, reward = None, -torch.inf
        for number in range(self.method.trials):
            choice = self.controller.choose()
            counts = self._counts(choice)
            net = copy.deepcopy(self.net)
            net.grow_(counts)
            trial = self._trained(lesson, net, f"trial-{number}", taught, known=True)
            earned = self._accuracy(trial, lesson, held_out) - self.method.price * sum(counts)
            self.controller.learn(choice, earned)
            if earned > reward:
                best, reward = trial, earned
        if best is not None:
            self._accept(best)

    def _trained(self, lesson: Lesson, net: Growing, phase: str, part: Part, *, known: bool) -> Trial:
        """Train a network's new units (all units for the first task) and head."""
        trial = Trial(net, lesson.new_head(net.widths[-1], self.seed, net)).train()
        after = hold(list(net.parameters()), net.new_entries(self.net.widths)) if known else None
        lesson.train(
            trial,
            trial,
            trial,
            phase=phase,
            part=part,
            epochs=self.method.epochs if known else None,
            weight_decay=0.0 if known else None,
            after_step=after,
        )
        return trial.eval()

    def _accept(self, trial: Trial) -> None:
        self.net = trial.net
        self.heads.append(trial.head)
        self.stamps.append(trial.net.widths)

    def _counts(self, choice: list[int]) -> list[int]:
        step = self.method.most / (self.method.choices - 1)
        return [round(chosen * step * width) for chosen, width in zip(choice, self.net.first_widths, strict=True)]

    @torch.no_grad()
    def _accuracy(self, trial: Trial, lesson: Lesson, part: Part) -> float:
        device = next(trial.parameters()).device
        x, y = (tensor.to(device) for tensor in part.rows(range(len(part))))
        with lesson.meter.counting():
            labels = torch.cat([trial(images).argmax(1) for images in lesson.augmented(x, self.seed).split(500)])
        return float((labels == y).float().mean())

    def numbers_remembered(self) -> int:
        """Count the controller's parameters."""
        return sum(parameter.numel() for parameter in self.controller.parameters())


def split(part: Part, share: float) -> tuple[Part, Part]:
    """Split a task's rows into those to train on and a held-out `share`, taken at regular intervals."""
    every = round(1 / share)
    x, y = part.rows(range(len(part)))
    held = torch.arange(len(part)) % every == 0
    taught = Part.of(part.name, (x[~held], y[~held]), part.classes)
    return taught, Part.of(part.name, (x[held], y[held]), part.classes)
