"""A plain chain of layers whose widths grow, shared by DEN and RCL.

Units are only ever added at the end of a layer, so a task is described by a width for every layer: it sees the first
units, those that existed when it was learned, and nothing that was added later.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble.lab.methods.lifelong.method import Student
from batchensemble.lab.methods.lifelong.trunk import Trunk

Widths = tuple[int, ...]
"""The number of units of every layer that a task sees."""
Masks = list[Tensor]
"""For every parameter, the selected entries."""


class Growing(nn.Module):
    """Convolutions and dense layers in a chain, each followed by layers without parameters.

    Args:
        trunk: a network like LeNet; anything but a plain chain is refused.
        generator: draws the weights of new units.

    Examples:
        >>> from .trunk import lenet_trunk
        >>> net = Growing(lenet_trunk(torch.Generator()), torch.Generator())
        >>> before = net.widths
        >>> net.grow_([1, 2, 0, 3])
        >>> before, net.widths, net(torch.zeros(2, 3, 32, 32), before).shape
        ((6, 16, 120, 84), (7, 18, 120, 87), torch.Size([2, 84]))
    """

    def __init__(self, trunk: Trunk, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator
        layers = [layer for block in trunk.blocks for layer in block]  # type: ignore[attr-defined]
        weighted = [i for i, layer in enumerate(layers) if any(True for _ in layer.parameters())]
        for i in weighted:
            if type(layers[i]) not in (nn.Conv2d, nn.Linear):
                kind = type(layers[i]).__name__
                raise ValueError(f"expected a plain chain of convolutions and dense layers, got {kind}")
        self.layers = nn.ModuleList(layers[i] for i in weighted)
        ends = [*weighted[1:], len(layers)]
        self.between = nn.ModuleList(nn.Sequential(*layers[i + 1 : end]) for i, end in zip(weighted, ends, strict=True))
        self.first_widths = self.widths

    @property
    def widths(self) -> Widths:
        """The number of units of every layer."""
        return tuple(len(weight) for weight, _ in self.weights())

    def weights(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Weight and bias of every layer."""
        return [(layer.weight, layer.bias) for layer in self.layers]  # type: ignore[misc]

    def forward(self, x: Tensor, widths: Widths) -> Tensor:
        """Map images to a task's features `(N, widths[-1])`."""
        for layer, after, width in zip(self.layers, self.between, widths, strict=True):
            # Maps are flattened channels first, so hidden inputs always come last.
            weight, bias = layer.weight[:width, : x.shape[1]], layer.bias[:width]  # type: ignore[index]
            x = after(F.conv2d(x, weight, bias) if isinstance(layer, nn.Conv2d) else F.linear(x, weight, bias))
        return x

    def inputs_per_unit(self) -> list[int]:
        """Each layer's inputs per unit of the layer before: more than one where maps are flattened."""
        firsts = [weight.shape[1] for weight, _ in self.weights()]
        return [1, *(inputs // width for inputs, width in zip(firsts[1:], self.widths[:-1], strict=True))]

    @torch.no_grad()
    def grow_(self, counts: Sequence[int]) -> None:
        """Add units: their incoming weights are drawn (He-normal), those to existing units are zero."""
        inputs = [0, *(n * each for n, each in zip(counts[:-1], self.inputs_per_unit()[1:], strict=True))]
        for layer, (weight, bias), count, more in zip(self.layers, self.weights(), counts, inputs, strict=True):
            grown = weight.new_zeros(len(weight) + count, weight.shape[1] + more, *weight.shape[2:])
            grown[: len(weight), : weight.shape[1]] = weight
            drawn = torch.randn(count, *grown.shape[1:], generator=self.generator) * (2 / grown[0].numel()) ** 0.5
            grown[len(weight) :] = drawn.to(grown.device)
            layer.weight, layer.bias = nn.Parameter(grown), nn.Parameter(F.pad(bias, (0, count)))

    @torch.no_grad()
    def keep_(self, units: Sequence[Tensor]) -> None:
        """Remove all units except those given, `(kept,)` for every layer."""
        columns = torch.arange(self.weights()[0][0].shape[1], device=units[0].device)
        places = zip(self.layers, self.weights(), units, [*self.inputs_per_unit()[1:], 1], strict=True)
        for layer, (weight, bias), kept, each in places:
            layer.weight, layer.bias = nn.Parameter(weight[kept][:, columns]), nn.Parameter(bias[kept])
            columns = (kept[:, None] * each + torch.arange(each, device=kept.device)).flatten()

    def new_entries(self, old: Widths) -> Masks:
        """Mask weights to or from units beyond `old`, and those units' biases, in the order of `parameters`."""
        masks: Masks = []
        firsts = [self.weights()[0][0].shape[1], *old[:-1]]
        places = zip(self.weights(), old, firsts, self.inputs_per_unit(), strict=True)
        for (weight, _), width, before, each in places:
            rows = torch.arange(len(weight), device=weight.device) >= width
            columns = torch.arange(weight.shape[1], device=weight.device) >= before * each
            masks += [spread(rows[:, None] | columns, weight), rows]
        return masks


class Stamped(Student):
    """A growing network, with a head and a time stamp (a width for every layer) per task: what DEN and RCL answer with.

    Args:
        net: the network at its initial widths.
        seed: seed of the run.
    """

    def __init__(self, net: Growing, seed: int) -> None:
        super().__init__()
        self.net, self.seed = net, seed
        self.heads = nn.ModuleList()
        self.stamps: list[Widths] = []

    @torch.no_grad()
    def logits(self, images: Tensor, task: int) -> Tensor:
        """The logits from the units that the task knew."""
        answers: Tensor = self.heads[task](self.net(images, self.stamps[task]))
        return answers

    def parameters_kept(self) -> int:
        """Count the network, heads and time stamps."""
        networks = (*self.net.parameters(), *self.heads.parameters())
        return sum(parameter.numel() for parameter in networks) + sum(map(len, self.stamps))


def spread(mask: Tensor, weight: Tensor) -> Tensor:
    """Expand a mask `(out, in)` to the shape of a layer's weight."""
    return mask.view(*mask.shape, *[1] * (weight.ndim - 2)).expand_as(weight)


def hold(parameters: Sequence[nn.Parameter], masks: Masks) -> Callable[[], None]:
    """A function that resets all entries outside the masks to their current values: momentum moves them."""
    kept = [parameter.detach().clone() for parameter in parameters]

    @torch.no_grad()
    def restore() -> None:
        for parameter, mask, value in zip(parameters, masks, kept, strict=True):
            parameter.copy_(torch.where(mask, parameter, value))

    return restore
