"""The networks that are timed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from batchensemble.lab.models import mlp, resnet

CLASSES = 10


@dataclass(frozen=True)
class Network:
    """A plain network, and the shape of one input.

    Examples:
        >>> network = NETWORKS["mlp"]
        >>> network.make()(network.inputs(5, torch.device("cpu"))).shape
        torch.Size([5, 10])
    """

    title: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]

    def inputs(self, rows: int, device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw random inputs `(rows, ...)`; images on a GPU are channels last, which tensor cores prefer."""
        drawn = torch.randn(rows, *self.shape, generator=torch.Generator().manual_seed(0)).to(device, dtype)
        last = device.type == "cuda" and drawn.ndim == 4
        return drawn.contiguous(memory_format=torch.channels_last) if last else drawn


NETWORKS: dict[str, Network] = {
    "resnet32x4": Network("ResNet-32x4", partial(resnet, 32, 4, CLASSES), (3, 32, 32)),
    "resnet14": Network("ResNet-14", partial(resnet, 14, 1, CLASSES), (3, 32, 32)),
    "mlp": Network("MLP 256-512-512-10", partial(mlp, 256, (512, 512), CLASSES), (256,)),
}
