"""Many small networks at once, and how the benchmark trains them.

All trials, and in an ensemble all members, form one stack of networks along the first axis, so that one batched
product per layer serves them all. The rows of a batch are the *last* axis, `(nets, features, rows)`: there are few
outputs, and products with a thin right-hand side are several times slower on a CPU.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from batchensemble.lab.methods.bandits.history import Seen
from batchensemble.lab.methods.bandits.streams import Streams


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
        every: pulls between two trainings.
        steps: minibatches per training.
        batch: rows of a minibatch, drawn with replacement from all observations.
        lr: learning rate; at step t it is `lr / (1 + decay t)`.
        decay: see `lr`.
        reset_lr: restart at `t = 0` in every training, as the benchmark intends to. `False` is what its code does: the
            reset never reaches the optimiser, so t counts all steps ever taken.
        clip: largest norm of a network's gradient.
        first_pulls: pulls of every arm, in turn, before anything is learned.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))  # JSON has lists only


Drop = Callable[[Tensor], Tensor]


def forward(layers: Sequence[Layer], columns: Tensor, drop: Drop | None = None) -> tuple[Tensor, Tensor]:
    """The last hidden features and the outputs of every network; `drop` is applied after each hidden layer.

    `columns` is `(nets, features, rows)`, or has a smaller first axis: then each of its entries serves several
    consecutive networks, and the first layer is one taller product instead of a copied batch.

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


def answer(layers: Sequence[Layer], contexts: Tensor, drop: Drop | None = None) -> Tensor:
    """The outputs `(trials, arms)` of one network per trial for `contexts (trials, context_dim)`."""
    return forward(layers, contexts[..., None], drop)[1][..., 0]


def _dense(layer: Layer, columns: Tensor) -> Tensor:
    bias, weight = (part.reshape(len(columns), -1, part.shape[2]) for part in (layer.bias, layer.weight))
    return torch.baddbmm(bias, weight, columns).view(len(layer.weight), -1, columns.shape[2])


def sizes(context_dim: int, hidden: Sequence[int], arms: int) -> list[tuple[int, int]]:
    """`(in, out)` of every layer."""
    widths = [context_dim, *hidden, arms]
    return list(pairwise(widths))


def draw_layers(streams: Streams, shape: Sequence[tuple[int, int]], init: float, nets: int = 1) -> list[Layer]:
    """Draw the initial layers of `nets` networks for every trial."""
    layers = []
    for inputs, outputs in shape:
        weight = streams.uniform(nets, outputs, inputs, low=-init, high=init).flatten(0, 1)
        layers.append(Layer(weight, torch.zeros(len(weight), outputs, 1, device=weight.device)))
    return layers


def squared_error(outputs: Tensor, seen: Seen) -> Tensor:
    """The mean squared error of every network on the pulled arms, `(nets,)`."""
    return (outputs.gather(1, seen.arms) - seen.rewards).square().mean((1, 2))


class RMSProp:
    """The benchmark's optimiser, for many networks, each with its own gradient norm.

        g <- g min(1, clip / ||g||),  v <- 0.9 v + 0.1 g^2,  p <- p - lr_t g / sqrt(v + 1e-10)

    v starts at one, as in TensorFlow. In torch it starts at zero, which would make the first steps three times as
    large as the learning rate, whatever the gradient.

    Args:
        parameters: tensors whose first axis is the networks; updated in place.
        training: learning rate, decay and clip.
    """

    def __init__(self, parameters: Sequence[Tensor], training: NetworkTraining) -> None:
        self.parameters, self.training = list(parameters), training
        self._squares = [torch.ones_like(parameter) for parameter in parameters]
        self._steps = 0

    def restart(self) -> None:
        """Reset the step count; the running squares stay."""
        self._steps = 0

    @torch.no_grad()
    def step(self, loss: Tensor) -> None:
        """Take one step down the gradient of `loss`, the sum of the losses of all networks."""
        gradients = torch.autograd.grad(loss, self.parameters)
        rate = self.training.lr / (1 + self.training.decay * self._steps)
        self._steps += 1
        shrink = self._shrink(gradients)
        for parameter, gradient, square in zip(self.parameters, gradients, self._squares, strict=True):
            gradient = gradient * shrink.view(-1, *[1] * (gradient.ndim - 1))
            square.mul_(0.9).addcmul_(gradient, gradient, value=0.1)
            parameter.addcdiv_(gradient, (square + 1e-10).sqrt_(), value=-rate)

    def _shrink(self, gradients: Sequence[Tensor]) -> Tensor:
        """The factor that clips every network's gradient, `(nets,)`."""
        norms = torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0).sqrt_()
        return self.training.clip / norms.clamp_(min=self.training.clip)
