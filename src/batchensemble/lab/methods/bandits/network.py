"""Many small networks at once, and how the benchmark trains them.

All trials, and in an ensemble all members, are one stack of networks with a common first axis: one batched
product per layer serves them all. The rows of a batch are the *last* axis, `(nets, features, rows)`: the
outputs are few, and products with a thin right-hand side are several times slower on a CPU.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from .history import Seen
from .streams import Streams


class Layer(NamedTuple):
    """One dense layer of every network: weight `(nets, out, in)`, bias `(nets, out, 1)`."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True)
class NetworkTraining:
    """How networks are trained; the defaults are those of the benchmark's released example.

    Args:
        hidden: widths of the hidden layers.
        init: kernels start uniform in `[-init, init)`, biases at zero.
        every: train after so many pulls.
        steps: minibatches of one training.
        batch: rows of a minibatch, drawn with replacement from all that was seen.
        lr: learning rate; at step t it is `lr / (1 + decay t)`.
        decay: see `lr`.
        reset_lr: start again at `t = 0` in every training, as the benchmark means to. `False` is what its code
            does: the reset never reaches the optimiser, so that t counts all steps ever made.
        clip: largest norm of the gradient of a network.
        first_pulls: pulls of every arm, in turn, before anything is learnt.
    """

    hidden: tuple[int, ...] = (50,)
    init: float = 0.3
    every: int = 50
    steps: int = 100
    batch: int = 512
    lr: float = 0.1
    decay: float = 0.5
    reset_lr: bool = False
    clip: float = 5.0
    first_pulls: int = 2


Drop = Callable[[Tensor], Tensor]


def forward(layers: Sequence[Layer], columns: Tensor, drop: Drop | None = None) -> tuple[Tensor, Tensor]:
    """Last hidden features and outputs of every network; `drop` is applied to what a hidden layer gives.

    `columns` is `(nets, features, rows)`, or has a smaller first axis: then each of its parts is for several networks
    in a row, and the first layer is one taller product instead of a copied batch.

    Examples:
        >>> shapes = (2, 5, 3), (2, 4, 5)
        >>> layers = [Layer(torch.ones(shape), torch.zeros(*shape[:2], 1)) for shape in shapes]
        >>> features, outputs = forward(layers, torch.ones(2, 3, 7))
        >>> features.shape, outputs.shape, outputs[0, 0, 0].item()
        (torch.Size([2, 5, 7]), torch.Size([2, 4, 7]), 15.0)
    """
    for layer in layers[:-1]:
        columns = _dense(layer, columns).relu_()
        columns = columns if drop is None else drop(columns)
    return columns, _dense(layers[-1], columns)


def _dense(layer: Layer, columns: Tensor) -> Tensor:
    bias, weight = (part.reshape(len(columns), -1, part.shape[2]) for part in (layer.bias, layer.weight))
    return torch.baddbmm(bias, weight, columns).view(len(layer.weight), -1, columns.shape[2])


def sizes(context_dim: int, hidden: Sequence[int], arms: int) -> list[tuple[int, int]]:
    """`(in, out)` of every layer."""
    widths = [context_dim, *hidden, arms]
    return list(pairwise(widths))


def draw_layers(streams: Streams, shape: Sequence[tuple[int, int]], init: float, nets: int = 1) -> list[Layer]:
    """Fresh layers, `nets` networks of every trial."""
    layers = []
    for inputs, outputs in shape:
        weight = streams.uniform(nets, outputs, inputs, low=-init, high=init).flatten(0, 1)
        layers.append(Layer(weight, torch.zeros(len(weight), outputs, 1, device=weight.device)))
    return layers


def squared_error(outputs: Tensor, seen: Seen) -> Tensor:
    """Mean squared error of every network on the arms that were pulled, `(nets,)`."""
    return (outputs.gather(1, seen.arms) - seen.rewards).square().mean((1, 2))


class RMSProp:
    """The benchmark's optimiser, for many networks with a gradient norm each.

        g <- g min(1, clip / ||g||),  v <- 0.9 v + 0.1 g^2,  p <- p - lr_t g / sqrt(v + 1e-10)

    v starts at one, as TensorFlow's does. torch's starts at zero, which would make the first steps at this learning
    rate three times as large as the rate itself, whatever the gradient.

    Args:
        parameters: tensors whose first axis is the networks; changed in place.
        training: learning rate, decay and clip.
    """

    def __init__(self, parameters: Sequence[Tensor], training: NetworkTraining) -> None:
        self.parameters, self.training = list(parameters), training
        self._squares = [torch.ones_like(parameter) for parameter in parameters]
        self._steps = 0

    def restart(self) -> None:
        """Forget how many steps were made; the squares stay."""
        self._steps = 0

    @torch.no_grad()
    def step(self, loss: Tensor) -> None:
        """One step down the gradient of `loss`, the sum over networks of what each should minimise."""
        gradients = torch.autograd.grad(loss, self.parameters)
        rate = self.training.lr / (1 + self.training.decay * self._steps)
        self._steps += 1
        shrink = self._shrink(gradients)
        for parameter, gradient, square in zip(self.parameters, gradients, self._squares, strict=True):
            gradient = gradient * shrink.view(-1, *[1] * (gradient.ndim - 1))
            square.mul_(0.9).addcmul_(gradient, gradient, value=0.1)
            parameter.addcdiv_(gradient, (square + 1e-10).sqrt_(), value=-rate)

    def _shrink(self, gradients: Sequence[Tensor]) -> Tensor:
        """What every network's gradient is multiplied by, `(nets,)`."""
        norms = torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0).sqrt_()
        return self.training.clip / norms.clamp_(min=self.training.clip)
