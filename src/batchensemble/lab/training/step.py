"""One optimisation step, as fast as the device allows.

The same few lines run everywhere. On a GPU they are compiled. On a single GPU they are then also replayed as a CUDA
graph, since a small network otherwise spends its steps launching kernels. A graph fixes addresses, not what they
hold: batches are copied into fixed buffers, learning rates are tensors, and random numbers come from torch's default
generator, which graphs advance.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map, tree_map_

from batchensemble.ensemble.compiling import compile_

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Loss = Callable[[nn.Module, Any], Mapping[str, Tensor]]
"""Maps (model, batch) to scalars by name; `loss` is minimised, all are logged."""

WARM_UP = 3  # steps before capture, for compilation, cuDNN's choice of kernels and the optimiser's buffers
MOST_SHAPES = 16  # each shape of batch has a graph of its own


class Step:
    """Computes loss and gradients, updates the parameters, and returns the loss function's scalars, detached.

    Args:
        fabric: device, precision and processes.
        model: the network, on the device.
        loss: the function to minimise.
        optimizer: updates the model's parameters.
        compiled: whether to compile the loss on a GPU.
    """

    def __init__(
        self,
        fabric: "Fabric",
        model: nn.Module,
        loss: Loss,
        optimizer: torch.optim.Optimizer,
        *,
        compiled: bool = True,
    ) -> None:
        objective = Objective(model, loss)
        if compiled and fabric.device.type == "cuda":
            torch.compiler.reset()  # torch limits recompilations: the ninth training of a process would run uncompiled
            compile_(objective, dynamic=False)
        self._fabric = fabric
        self._objective, self._optimizer = fabric.setup(objective, optimizer)

    def __call__(self, batch: Any) -> Mapping[str, Tensor]:
        """Take one step on a batch."""
        self._optimizer.zero_grad(set_to_none=True)
        scalars = self._objective(batch)
        self._fabric.backward(scalars["loss"])
        self._optimizer.step()
        return {name: value.detach() for name, value in scalars.items()}


class Replayed:
    """Replays a step as a CUDA graph, after a few ordinary steps to warm up; one graph for every shape of batch.

    The returned scalars are overwritten by the next call.

    Args:
        step: the step; gets batches of few shapes, and anything that changes between calls must be a tensor.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._warm = 0
        self._stream: torch.cuda.Stream = torch.cuda.Stream()
        self._recorded: dict[tuple[torch.Size, ...], Recorded | None] = {}

    def __call__(self, batch: Any) -> Mapping[str, Tensor]:
        """Take one step on a batch."""
        shapes = shapes_of(batch)
        if self._warm < WARM_UP or shapes not in self._recorded:
            self._warm += 1
            self._recorded.setdefault(shapes, None)
            return self._warm_up(batch)
        recorded = self._recorded[shapes] or self._capture(batch)
        self._recorded[shapes] = recorded
        copy_batch_(recorded.batch, batch)
        recorded.graph.replay()
        return recorded.scalars

    def _warm_up(self, batch: Any) -> Mapping[str, Tensor]:
        """Take an ordinary step on a side stream, so that whatever cannot be captured has happened before."""
        if len(self._recorded) > MOST_SHAPES:
            raise ValueError(f"batches have more than {MOST_SHAPES} shapes, the last {shapes_of(batch)}")
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            scalars = self._step(batch)
        current.wait_stream(self._stream)
        return scalars

    def _capture(self, batch: Any) -> "Recorded":
        """Capture the step without taking it; gradients and scalars then live in the graphs' memory pool.

        All graphs share the pool: no step leaves anything there that another one needs.
        """
        buffers = tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, batch)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        pool = next((one.graph.pool() for one in self._recorded.values() if one), None)
        with torch.cuda.graph(graph, pool=pool, stream=self._stream):
            scalars = self._step(buffers)
        return Recorded(graph, buffers, scalars)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A captured graph, the batch it reads and the scalars it writes."""

    graph: torch.cuda.CUDAGraph
    batch: Any
    scalars: Mapping[str, Tensor]


def shapes_of(batch: Any) -> tuple[torch.Size, ...]:
    """The shapes of a batch's tensors, in order."""
    return tuple(leaf.shape for leaf in tree_leaves(batch) if isinstance(leaf, Tensor))


class Objective(nn.Module):
    """Model and loss as one module, so that DDP, autocast and the compiler see all of it."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(self, batch: Any) -> Mapping[str, Tensor]:
        """The scalars of one batch."""
        return dict(self._loss(self.model, batch))


def copy_batch_(into: Any, batch: Any) -> None:
    """Copy a batch's tensors into those of another, its buffers.

    Raises:
        ValueError: the shapes differ.

    Examples:
        >>> buffers = (torch.zeros(2), {"labels": torch.zeros(2)})
        >>> copy_batch_(buffers, (torch.ones(2), {"labels": torch.tensor([3.0, 4.0])}))
        >>> buffers
        (tensor([1., 1.]), {'labels': tensor([3., 4.])})
    """

    def copy_(buffer: Any, value: Any) -> None:
        if isinstance(buffer, Tensor):
            if buffer.shape != value.shape:
                raise ValueError(f"every batch must be {tuple(buffer.shape)}, got {tuple(value.shape)}")
            buffer.copy_(value, non_blocking=True)

    tree_map_(copy_, into, batch)
