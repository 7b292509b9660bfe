"""The work that is timed: inference, training steps, rows routed to members, one layer forward and backward."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import batchensemble as be
from batchensemble.ensemble.compiling import compile_
from batchensemble.lab.studies.speed.networks import CLASSES, Network
from batchensemble.lab.studies.speed.timing import Work
from batchensemble.lab.training.devices import on_device
from batchensemble.prediction import combine_outputs


def inference(models: list[nn.Module], x: Tensor, compiled: bool) -> Work:
    """One answer per input, from one model or from several, combined as members are; bfloat16 on a GPU."""
    asked = [_forward(on_device(model.eval(), x.device).to(x.dtype), compiled) for model in models]

    def answer() -> Tensor:
        with torch.no_grad():
            outputs = [model(x) for model in asked]
            return outputs[0] if len(outputs) == 1 else combine_outputs(torch.stack(outputs), "softmax")

    return answer


def training(models: list[nn.Module], x: Tensor, compiled: bool) -> Work:
    """Loss and gradients, one model after another, and an update; bfloat16 by autocast on a GPU."""
    placed = [on_device(model.train(), x.device) for model in models]
    trained = [_forward(model, compiled) for model in placed]
    groups = [group for model in placed for group in be.parameter_groups(model, lr=1e-3, weight_decay=1e-4)]
    optimizer = torch.optim.SGD(groups, lr=1e-3, momentum=0.9, nesterov=True)
    labels = torch.arange(len(x), device=x.device) % CLASSES

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for model in trained:
            with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
                logits = model(x)  # N rows, or every member's N rows one after another
                loss = F.cross_entropy(logits, labels.repeat(len(logits) // len(x)))
            loss.backward()
        optimizer.step()

    return step


def routing(network: Network, members: int, x: Tensor, compiled: bool) -> Work:
    """An answer for every row, from the member that the row names."""
    model = on_device(be.convert(network.make(), members, combine=None).eval(), x.device).to(x.dtype)
    asked = _forward(model, compiled)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    ids = (order % members).to(x.device)

    def answer() -> Tensor:
        with torch.no_grad():
            return asked(x, member=ids)  # type: ignore[no-any-return]

    return answer


def both_ways(layer: nn.Module, rows: int, width: int, device: torch.device, compiled: bool) -> Work:
    """Forward and backward through one layer, to its input and its parameters; bfloat16 on a GPU."""
    layer = layer.to(device, number_type(device))
    x, gradient = torch.randn(2, rows, width, device=device, dtype=number_type(device)).unbind()
    x.requires_grad_()
    forward, inputs = _forward(layer, compiled), [x, *layer.parameters()]

    def work() -> tuple[Tensor, ...]:
        return torch.autograd.grad(forward(x), inputs, gradient)

    return work


def number_type(device: torch.device) -> torch.dtype:
    """bfloat16 for a GPU, float32 otherwise."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def _forward(model: nn.Module, compiled: bool) -> nn.Module:
    if compiled:
        compile_(model, dynamic=False)
    return model
