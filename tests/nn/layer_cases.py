"""Every kind of layer with its options: what the contract of test_layers.py is held against."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

import batchensemble as be
from batchensemble.nn.routing.route import Route, travel

M = 3
Run = Callable[..., Tensor]


@dataclass(frozen=True)
class Case:
    """One layer: torch's class name, its arguments, the shape of one row, and how it is called.

    `axis` is where the rows are; `call` what else the layer is given; `inputs` how often it is given the batch.
    """

    kind: str
    args: tuple[Any, ...]
    row: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    call: dict[str, Any] = field(default_factory=dict)
    axis: int = 0
    inputs: int = 1

    def plain(self) -> nn.Module:
        """Torch's own layer, float64."""
        torch.manual_seed(0)
        return getattr(nn, self.kind)(*self.args, **self.options).double()

    def layer(self, members: int = M, **options: Any) -> nn.Module:
        """Ours, float64, with values that no initialisation would give."""
        return randomise(getattr(be.nn, self.kind)(*self.args, members=members, **self.options, **options).double())

    def batch(self, rows: int, seed: int = 1) -> tuple[Tensor, ...]:
        """Inputs for `rows` rows."""
        generator = torch.Generator().manual_seed(seed)
        if self.kind == "Embedding":
            return (torch.randint(0, self.args[0], (rows, *self.row), generator=generator),)
        x = torch.randn(rows, *self.row, generator=generator, dtype=torch.float64)
        return (x.movedim(0, self.axis),) * self.inputs

    def run(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
        """The layer's first answer, rows in front."""
        out = module(*inputs, **self.call)
        return (out[0] if isinstance(out, tuple) else out).movedim(self.axis, 0)

    def routed(self, layer: nn.Module, inputs: tuple[Tensor, ...], owner: Any, count: int | None = None) -> Tensor:
        """The layer as an ensemble calls it: `owner` says whose the rows are, `count` how many the batch has."""
        for module in layer.modules():
            module.routed = True
        members = next(int(module.members) for module in layer.modules() if hasattr(module, "members"))
        count = inputs[0].shape[self.axis] if count is None else count
        return travel(Route(members, count, owner), self.run, layer, inputs)


def randomise(module: nn.Module, seed: int = 0) -> nn.Module:
    """Parameters that are neither one nor zero, different for every member."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4 + 0.3)
        for name, buffer in module.named_buffers():
            if buffer.is_floating_point():
                drawn = torch.rand(buffer.shape, generator=generator).to(buffer)
                buffer.copy_(drawn + (0.5 if name.endswith("var") else 0.0))
    return module


def whole_batch(inputs: tuple[Tensor, ...], axis: int, copies: int = M) -> tuple[Tensor, ...]:
    """The batch once for every member, member-major."""
    return tuple(torch.cat([x] * copies, axis) for x in inputs)


RANK_ONE: dict[str, Case] = {
    "linear": Case("Linear", (3, 4), (3,)),
    "linear, no bias": Case("Linear", (3, 4), (3,), {"bias": False}),
    "linear, positions": Case("Linear", (3, 4), (2, 5, 3)),
    "conv1d": Case("Conv1d", (4, 6, 3), (4, 7), {"stride": 2, "padding": 1}),
    "conv1d, dilated, valid": Case("Conv1d", (4, 6, 2), (4, 7), {"dilation": 3, "padding": "valid"}),
    "conv1d, same, reflect": Case("Conv1d", (2, 3, 4), (2, 7), {"padding": "same", "padding_mode": "reflect"}),
    "conv2d": Case("Conv2d", (3, 2, 3), (3, 5, 4), {"padding": 1}),
    "conv2d, groups": Case("Conv2d", (4, 6, 3), (4, 5, 5), {"groups": 2, "stride": (2, 1), "padding": (1, 0)}),
    "conv2d, depthwise": Case("Conv2d", (4, 8, 3), (4, 4, 4), {"groups": 4, "bias": False}),
    "conv2d, same": Case("Conv2d", (2, 3, (2, 3)), (2, 4, 4), {"padding": "same", "dilation": 2}),
    "conv2d, circular": Case("Conv2d", (2, 3, 3), (2, 4, 4), {"padding": 2, "padding_mode": "circular"}),
    "conv2d, replicate": Case("Conv2d", (2, 2, 3), (2, 4, 4), {"padding": (2, 1), "padding_mode": "replicate"}),
    "conv3d": Case("Conv3d", (2, 3, 2), (2, 3, 3, 3), {"padding": 1, "stride": 2}),
    "conv3d, groups": Case("Conv3d", (2, 4, 2), (2, 3, 3, 2), {"groups": 2, "bias": False}),
    "transposed1d": Case("ConvTranspose1d", (4, 6, 3), (4, 5), {"stride": 2, "padding": 1, "output_padding": 1}),
    "transposed2d": Case("ConvTranspose2d", (3, 2, 3), (3, 3, 4), {"stride": 2, "bias": False}),
    "transposed2d, groups": Case("ConvTranspose2d", (4, 6, 3), (4, 3, 3), {"groups": 2, "stride": 2, "dilation": 2}),
    "transposed2d, output size": Case(
        "ConvTranspose2d", (2, 3, 3), (2, 4, 4), {"stride": 2, "padding": 1}, {"output_size": (8, 7)}
    ),
    "transposed3d": Case("ConvTranspose3d", (2, 4, 2), (2, 2, 2, 3), {"groups": 2, "stride": 2}),
}

OTHERS: dict[str, Case] = {
    "embedding": Case("Embedding", (9, 4), (5,), {"padding_idx": 0}),
    "layer norm": Case("LayerNorm", (4,), (3, 4), {"eps": 0.1}),
    "layer norm, two axes": Case("LayerNorm", ((3, 4),), (2, 3, 4)),
    "layer norm, no bias": Case("LayerNorm", (4,), (3, 4), {"bias": False}),
    "layer norm, no affine": Case("LayerNorm", (4,), (4,), {"elementwise_affine": False}),
    "rms norm": Case("RMSNorm", (4,), (3, 4), {"eps": 0.1}),
    "rms norm, two axes": Case("RMSNorm", ((3, 4),), (2, 3, 4)),
    "rms norm, no affine": Case("RMSNorm", (4,), (4,), {"elementwise_affine": False}),
    "group norm": Case("GroupNorm", (2, 4), (4, 3, 3), {"eps": 0.1}),
    "group norm, no affine": Case("GroupNorm", (2, 4), (4, 3), {"affine": False}),
    "attention": Case("MultiheadAttention", (4, 2), (5, 4), {"batch_first": True}, inputs=3),
    "attention, time first": Case("MultiheadAttention", (4, 2), (5, 4), axis=1, inputs=3),
    "lstm": Case("LSTM", (3, 4), (5, 3), {"batch_first": True}),
    "lstm, two ways": Case("LSTM", (3, 4, 2), (5, 3), {"bidirectional": True, "proj_size": 2}, axis=1),
    "gru": Case("GRU", (3, 4), (5, 3), {"batch_first": True, "bias": False}),
    "gru, two layers": Case("GRU", (3, 4), (5, 3), {"num_layers": 2, "bidirectional": True}, axis=1),
}
NORMS_IN_EVAL: dict[str, Case] = {
    "batch norm 1d": Case("BatchNorm1d", (4,), (4,)),
    "batch norm 1d, positions": Case("BatchNorm1d", (4,), (4, 3), {"affine": False}),
    "batch norm 2d": Case("BatchNorm2d", (4,), (4, 2, 3)),
    "batch norm 3d": Case("BatchNorm3d", (2,), (2, 2, 2, 2), {"eps": 0.1}),
}
EVERY = RANK_ONE | OTHERS | NORMS_IN_EVAL
