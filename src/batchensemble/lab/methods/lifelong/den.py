"""Dynamically expandable networks (Yoon et al., 2018), after the paper's description, for plain chains like LeNet."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from batchensemble.lab.methods.lifelong.growing import Growing, Masks, Stamped, Widths, hold, spread
from batchensemble.lab.methods.lifelong.lesson import Lesson
from batchensemble.lab.methods.lifelong.method import Network

ZERO = 1e-3  # smaller weights count as absent


@dataclass(frozen=True)
class DEN:
    """Retrains selectively, expands if the loss stays high, and splits units that drifted.

    The constants are those of the authors' released code where it has them. Our own decisions: units are added in
    proportion to a layer's initial width, instead of ten to each (a convolution of LeNet has six); at most that many
    are split; of a split unit, the old half feeds existing units and the new half feeds new ones; every phase lasts as
    long as one training of the other methods; a proximal step follows every step of gradient descent.

    Args:
        sparsity: strength of the L1 penalty on weights, which decides what a new task retrains.
        group_sparsity: strength of the group penalty on new units; a unit that it drives to zero is removed again.
        drift: strength of the pull of retrained weights towards their old values.
        share: number of units to add, as a share of a layer's initial width.
        loss: loss above which the network expands.
        split: distance that a unit's weights may move before it is split.
    """

    sparsity: float = 1e-5
    group_sparsity: float = 1e-3
    drift: float = 0.5
    share: float = 0.08
    loss: float = 0.01
    split: float = 0.05

    def begin(self, network: Network, seed: int, folder: Path | None = None) -> "Expandable":
        """The network at its initial widths."""
        generator = torch.Generator().manual_seed(seed)
        return Expandable(self, Growing(network(generator), generator), seed)


class Expandable(Stamped):
    """A network that expands where a task needs it."""

    def __init__(self, method: DEN, net: Growing, seed: int) -> None:
        super().__init__(net, seed)
        self.method = method

    @property
    def _head(self) -> nn.Linear:
        """The head of the newest task."""
        return cast(nn.Linear, self.heads[-1])

    def learn(self, lesson: Lesson) -> None:
        """Train everything on the first task; take a later one through all phases."""
        self.heads.append(lesson.new_head(self.net.widths[-1], self.seed, self.net))
        self.train()
        if not self.stamps:
            everything = nn.ModuleList([self.net, self._head])
            self._train(lesson, "first", everything, after=self._shrink(lesson, everything))
        else:
            before = [parameter.detach().clone() for parameter in self.net.parameters()]
            self._retrain(lesson, before)
            if not lesson.history or lesson.history[-1].loss > self.method.loss:
                self._expand(lesson)
            self._split(lesson, before)
        self.stamps.append(self.net.widths)
        self.eval()

    # ---- phases --------------------------------------------------------------------------------------------------

    def _retrain(self, lesson: Lesson, before: list[Tensor]) -> None:
        """Train a sparse head first, then everything it is connected to, held close to its old values."""
        head = self._head
        self._train(lesson, "select", head, after=self._shrink(lesson, head))
        masks = self._connected()

        def pull() -> Tensor:
            moved = zip(self.net.parameters(), before, strict=True)
            return self.method.drift / 2 * torch.stack([(w - old).square().sum() for w, old in moved]).sum()

        restore = hold(list(self.net.parameters()), masks)
        self._train(lesson, "retrain", nn.ModuleList([self.net, head]), penalty=pull, after=restore)

    def _expand(self, lesson: Lesson) -> None:
        """Add units, train only them, and remove those that group sparsity drove to zero."""
        old = self.net.widths
        self._grow(lesson, [ceil(self.method.share * width) for width in self.net.first_widths])
        restore = hold(list(self.net.parameters()), self.net.new_entries(old))
        step = lesson.training.lr * self.method.group_sparsity

        @torch.no_grad()
        def after() -> None:
            restore()
            for (weight, _), width in zip(self.net.weights(), old, strict=True):
                norms = weight[width:].flatten(1).norm(dim=1)
                factor = (1 - step / norms.clamp(min=1e-12)).clamp(min=0)
                weight[width:] *= factor.view(-1, *[1] * (weight.ndim - 1))

        self._train(lesson, "expand", nn.ModuleList([self.net, self._head]), after=after)
        self._prune(old)

    @torch.no_grad()
    def _split(self, lesson: Lesson, before: list[Tensor]) -> None:
        """Split units that moved far: the old one returns to its earlier values, a new one has the current ones."""
        moved = [self._drifted(place, before[2 * place]) for place in range(len(self.net.layers))]
        counts = [len(units) for units in moved]
        if not any(counts):
            return
        old = self.net.widths
        self._grow(lesson, counts)
        for place, units in enumerate(moved):
            weight, bias = self.net.weights()[place]
            weight[old[place] :], bias[old[place] :] = weight[units], bias[units]
            was = before[2 * place]
            weight[units, : was.shape[1]], bias[units] = was[units], before[2 * place + 1][units]
        self._send(moved, old)
        restore = hold(list(self.net.parameters()), self.net.new_entries(old))
        with torch.enable_grad():
            self._train(lesson, "split", nn.ModuleList([self.net, self._head]), after=restore)

    # ---- parts of phases -----------------------------------------------------------------------------------------

    def _connected(self) -> Masks:
        """Masks of the weights between units that are connected to the head by a path of present weights."""
        reached = (self._head.weight.abs() > ZERO).any(0)
        masks: Masks = []
        for (weight, _), each in zip(reversed(self.net.weights()), reversed(self.net.inputs_per_unit()), strict=True):
            there = (weight.abs() > ZERO).view(*weight.shape[:2], -1).any(2)
            below = (there & reached[:, None]).any(0).view(-1, each).any(1)
            masks = [spread(reached[:, None] & below.repeat_interleave(each), weight), reached, *masks]
            reached = below
        return masks

    def _drifted(self, place: int, was: Tensor) -> Tensor:
        """The units of a layer that moved too far, furthest first, at most as many as an expansion adds."""
        weight = self.net.weights()[place][0]
        distance = (weight[: len(was), : was.shape[1]] - was).flatten(1).norm(dim=1)
        most = ceil(self.method.share * self.net.first_widths[place])
        order = distance.argsort(descending=True)[:most]
        far: Tensor = order[distance[order] > self.method.split]
        return far

    def _send(self, moved: list[Tensor], old: Widths) -> None:
        """Rewire split units: the new half takes over what the unit fed to new units and to the head."""
        for place, units in enumerate(moved[:-1]):
            weight = self.net.weights()[place + 1][0]
            by_unit = weight.unflatten(1, (self.net.widths[place], -1))[old[place + 1] :]
            by_unit[:, old[place] :] = by_unit[:, units]
            by_unit[:, units] = 0
        head = self._head
        head.weight[:, old[-1] :] = head.weight[:, moved[-1]]
        head.weight[:, moved[-1]] = 0

    def _prune(self, old: Widths) -> None:
        kept = []
        for (weight, _), width in zip(self.net.weights(), old, strict=True):
            alive = weight.detach().flatten(1).norm(dim=1) > ZERO
            alive[:width] = True
            kept.append(alive.nonzero().squeeze(1))
        self.net.keep_(kept)
        self._head.weight = nn.Parameter(self._head.weight.detach()[:, kept[-1]])

    def _shrink(self, lesson: Lesson, module: nn.Module) -> Callable[[], None]:
        """The proximal step of the L1 penalty: every weight shrinks towards zero, and may become zero."""
        step = lesson.training.lr * self.method.sparsity

        @torch.no_grad()
        def after() -> None:
            for parameter in module.parameters():
                if parameter.ndim > 1:
                    parameter.copy_(parameter.sign() * (parameter.abs() - step).clamp(min=0))

        return after

    def _grow(self, lesson: Lesson, counts: list[int]) -> None:
        head = self._head
        self.net.grow_(counts)
        wider = lesson.new_head(self.net.widths[-1], self.seed, self.net)
        with torch.no_grad():
            wider.weight[:, : head.weight.shape[1]] = head.weight
            wider.bias.copy_(head.bias)
        self.heads[-1] = wider

    def _train(
        self,
        lesson: Lesson,
        phase: str,
        trained: nn.Module,
        *,
        after: Callable[[], None],
        penalty: Callable[[], Tensor] | None = None,
    ) -> None:
        """Train one phase; weight decay plays the part of the authors' L2 penalty."""
        widths, head = self.net.widths, self._head

        def answer(x: Tensor) -> Tensor:
            answers: Tensor = head(self.net(x, widths))
            return answers

        lesson.train(self, answer, trained, phase=phase, penalty=penalty, after_step=after)
