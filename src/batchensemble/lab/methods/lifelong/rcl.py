"""Reinforced continual learning (Xu & Zhu, 2018): a controller tries out how many units a task needs."""

import copy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from batchensemble.lifelong.data import Part

from .controller import Controller
from .growing import Growing, Widths, hold
from .lesson import Lesson, new_head
from .method import Network

HELD_OUT = 0.2  # of a task's rows, which rewards are measured on


@dataclass(frozen=True)
class RCL:
    """For every later task, trials: the controller says how many units each layer gets, the new units are trained.

    A trial's reward is its accuracy on held-out rows minus `price` times the units added; the best trial is kept, and
    what earlier tasks know is frozen. Decided here: choices are steps of a layer's first width up to `most`, instead of
    0 to 29 units (a convolution of LeNet has six); a fifth of the rows is held out of trials.

    Args:
        trials: per task.
        epochs: of a trial; by default as long as a training of the other methods.
        price: of one unit.
        choices: that the controller has for a layer.
        most: units that can be added to a layer, as a share of its first width.
    """

    trials: int = 50
    epochs: int | None = None
    price: float = 1e-4
    choices: int = 30
    most: float = 0.25

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> "Reinforced":
        """The network at its first widths, and a controller that knows nothing."""
        generator = torch.Generator().manual_seed(seed)
        return Reinforced(self, Growing(network(generator), generator), seed)


class Trial(nn.Module):
    """A network with new units and a head."""

    def __init__(self, net: Growing, head: nn.Linear, known: bool) -> None:
        super().__init__()
        self.net, self.head, self.known = net, head, known

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the newest task."""
        answers: Tensor = self.head(self.net(x, self.net.widths))
        return answers


class Reinforced(nn.Module):
    """A growing network, a head and a width for every layer per task, and the controller."""

    def __init__(self, method: RCL, net: Growing, seed: int) -> None:
        super().__init__()
        self.method, self.net, self.seed = method, net, seed
        self.heads = nn.ModuleList()
        self.stamps: list[Widths] = []
        self.controller = Controller(len(net.layers), method.choices, seed)

    def learn(self, lesson: Lesson) -> None:
        """The first task trains the network; later ones try out how far it should grow."""
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
        """A network whose new units (all of them at first) and head were trained."""
        head = new_head(net.widths[-1], lesson.classes, lesson.seed_in(self.seed))
        trial = Trial(net, head.to(next(net.parameters()).device), known).train()
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
            labels = torch.cat([trial(images).argmax(1) for images in lesson.seen(x, self.seed).split(500)])
        return float((labels == y).float().mean())

    @torch.no_grad()
    def logits(self, images: Tensor, task: int) -> Tensor:
        """What the units that the task knew say."""
        answers: Tensor = self.heads[task](self.net(images, self.stamps[task]))
        return answers

    def parameters_kept(self) -> int:
        """Network, heads and widths."""
        networks = (*self.net.parameters(), *self.heads.parameters())
        return sum(parameter.numel() for parameter in networks) + sum(map(len, self.stamps))

    def numbers_remembered(self) -> int:
        """The controller."""
        return sum(parameter.numel() for parameter in self.controller.parameters())


def split(part: Part, share: float) -> tuple[Part, Part]:
    """A task's rows in two: those to train on, and `share` of them held out (every so-many-th row)."""
    every = round(1 / share)
    x, y = part.rows(range(len(part)))
    held = torch.arange(len(part)) % every == 0
    taught = Part.of(part.name, (x[~held], y[~held]), part.classes)
    return taught, Part.of(part.name, (x[held], y[held]), part.classes)
